"""Messages for the errors of `huggingface_hub`."""

import errno

# Classes of the HTTP library are named and not imported, because huggingface_hub has
# changed that library from one major version to the next.
NO_NETWORK = {"ConnectError", "ConnectTimeout", "ProxyError", "PoolTimeout"}
INTERRUPTED = {"TransportError", "XetDownloadError", "ConnectionError"}
LOG_IN = "log in with `hf auth login` or set HF_TOKEN"


def explain(
    error: BaseException, name: str, repository: str, revision: str, hint: str
) -> str | None:
    """Return the message for an error; None for an error of another kind.

    Args:
      error: the exception.
      name: the path or name that the user gave.
      repository: "owner/name".
      revision: branch, tag or commit.
      hint: sentence for a repository that does not exist; "" for none.
    """
    from huggingface_hub import constants, errors

    kinds = {kind.__name__ for kind in type(error).__mro__}
    host = constants.ENDPOINT
    if isinstance(error, errors.OfflineModeIsEnabled):
        return (
            f"{name} is not in the cache {constants.HF_HUB_CACHE}, and HF_HUB_OFFLINE "
            f"forbids downloads. {hint}Unset it once, or copy the cache from another "
            "machine."
        )
    if isinstance(error, errors.GatedRepoError):
        return (
            f"{name} is a gated model. Accept its terms on {host}/{repository}, then "
            f"{LOG_IN}."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"{name} is neither a path nor a public model of {host}. {hint}If the "
            f"model is private, {LOG_IN}."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return (
            f"{name}: {host}/{repository} has no revision {revision!r}. Give a branch, "
            "a tag or a commit that it has."
        )
    if isinstance(error, errors.HFValidationError):
        return (
            f"{name} is neither a path nor the name of a model. {hint}Names have the "
            "form owner/name."
        )
    if isinstance(error, errors.HfHubHTTPError):
        return _of_status(error.response.status_code, name, host)
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__:
        return explain(error.__cause__, name, repository, revision, hint)
    if isinstance(error, errors.FileMetadataError):
        return (
            f"{name}: {host} does not answer like a Hugging Face hub. Check "
            "HF_ENDPOINT and the proxy."
        )
    if kinds & NO_NETWORK:
        return (
            f"{name} is not a path here, and {host} cannot be reached. {hint}Check the "
            "network and HTTPS_PROXY, or set HF_ENDPOINT to a mirror."
        )
    if kinds & INTERRUPTED or "Consistency check failed" in str(error):
        return f"The download of {name} was interrupted ({error}). Repeat the command."
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS):
        return (
            f"{name} cannot be saved: {constants.HF_HUB_CACHE} is not writable. Set "
            "HF_HOME to a folder that you can write."
        )
    return None


def _of_status(status, name, host):
    if status == 401:
        return f"{name}: {host} refuses the token in HF_TOKEN. Unset it, or {LOG_IN}."
    if status == 403:
        return f"{name}: {host} forbids the download (403). To get access, {LOG_IN}."
    if status == 404:
        return f"{name} has changed during the download. Repeat the command."
    if status == 429:
        return (
            f"{name}: {host} receives too many requests from here (429). Wait some "
            f"minutes, or {LOG_IN}."
        )
    return f"{name}: {host} answers with status {status}. Repeat the command later."
