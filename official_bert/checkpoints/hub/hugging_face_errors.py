"""Messages for errors of `huggingface_hub`."""

import errno

# HTTP errors are matched by class name, without an import, because major
# versions of huggingface_hub use different HTTP libraries.
NO_NETWORK = {"ConnectError", "ConnectTimeout", "ProxyError", "PoolTimeout"}
INTERRUPTED = {"TransportError", "XetDownloadError", "ConnectionError"}
LOG_IN = "log in with `hf auth login` or set HF_TOKEN"


def explain(
    error: BaseException, name: str, repository: str, revision: str, hint: str
) -> str | None:
    """Return the message for an error; None for other kinds of errors.

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
            f"{name} is not in the cache {constants.HF_HUB_CACHE}, and "
            f"HF_HUB_OFFLINE forbids downloads. {hint}Unset HF_HUB_OFFLINE "
            "once, or copy the cache from another machine."
        )
    if isinstance(error, errors.GatedRepoError):
        return (
            f"{name} is a gated model. Accept its terms on {host}/{repository}, then "
            f"{LOG_IN}."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"{name} is neither a path nor a public model at {host}. {hint}If "
            f"the model is private, {LOG_IN}."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return (
            f"{name}: {host}/{repository} has no revision {revision!r}. Give an "
            "existing branch, tag or commit."
        )
    if isinstance(error, errors.HFValidationError):
        return (
            f"{name} is neither a path nor a valid model name. {hint}Names have "
            "the form owner/name."
        )
    if isinstance(error, errors.HfHubHTTPError):
        return _of_status(error.response.status_code, name, host)
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__:
        return explain(error.__cause__, name, repository, revision, hint)
    if isinstance(error, errors.FileMetadataError):
        return (
            f"{name}: {host} does not respond like a Hugging Face hub. Check "
            "HF_ENDPOINT and the proxy."
        )
    if kinds & NO_NETWORK:
        return (
            f"{name} is not a local path, and {host} cannot be reached. "
            f"{hint}Check the network and HTTPS_PROXY, or set HF_ENDPOINT to a "
            "mirror."
        )
    if kinds & INTERRUPTED or "Consistency check failed" in str(error):
        return f"The download of {name} was interrupted ({error}). Repeat the command."
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS):
        return (
            f"Cannot save {name}: {constants.HF_HUB_CACHE} is not writable. Set "
            "HF_HOME to a writable folder."
        )
    return None


def _of_status(status, name, host):
    if status == 401:
        return f"{name}: {host} rejects the token in HF_TOKEN. Unset it, or {LOG_IN}."
    if status == 403:
        return f"{name}: {host} denies the download (403). To get access, {LOG_IN}."
    if status == 404:
        return f"{name} changed during the download. Repeat the command."
    if status == 429:
        return (
            f"{name}: {host} reports too many requests (429). Wait some "
            f"minutes, or {LOG_IN}."
        )
    return f"{name}: {host} returned status {status}. Repeat the command later."
