"""Query a server that speaks TF Serving's REST API: serve.py, or TF Serving."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request

from official_bert.errors import UserError


def make_predict(url, name, version=None, signature=None, timeout_s=60.0):
    """Return a function of rows that returns the prediction for each.

    Rows are dicts of input name -> what JSON can hold. The function raises
    `UserError` where the server cannot be reached or refuses the rows.

    Args:
      url: of the server, for example "http://127.0.0.1:8501".
      name: of the model.
      version: number, or None for the newest.
      signature: name, or None for the default.
      timeout_s: seconds to wait for an answer.
    """
    url = f"{url.rstrip('/')}/v1/models/{urllib.parse.quote(name, safe='')}"
    if version is not None:
        url += f"/versions/{version}"
    fields = {"signature_name": signature} if signature else {}

    def predict(rows):
        body = json.dumps({**fields, "instances": rows}).encode("ascii")
        answer = _post(f"{url}:predict", body, timeout_s)
        predictions = answer.get("predictions") if isinstance(answer, dict) else None
        if not isinstance(predictions, list) or len(predictions) != len(rows):
            raise UserError(
                f"{url} did not answer with a prediction for each row; is it TF "
                "Serving?"
            )
        return predictions

    return predict


def _post(url, body, timeout_s):
    """Post JSON and return the JSON that comes back."""
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
        is_local = host in ("localhost", "::1") or host.startswith("127.")
        # A proxy cannot reach this machine's own addresses.
        proxies = [urllib.request.ProxyHandler({})] if is_local else []
        request = urllib.request.Request(
            url, body, {"Content-Type": "application/json"}
        )
        opener = urllib.request.build_opener(*proxies)
        with opener.open(request, timeout=timeout_s) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        message = f"{url} answered {error.code}: {_message_of(error)}"
        raise UserError(message) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise UserError(
                f"{url} did not answer within {timeout_s:g} s; raise --timeout_s or "
                "send fewer rows at a time."
            ) from error
        raise UserError(
            f"Cannot reach {url} ({reason}); is the server running there?"
        ) from error
    except ValueError as error:
        raise UserError(
            f"{url} is not a URL, or did not answer in JSON ({error}); give a URL such "
            "as http://127.0.0.1:8501."
        ) from error


def _message_of(error):
    """Return the error in the body of an `HTTPError`, or the body's beginning."""
    try:
        body = error.read()
    except (OSError, http.client.HTTPException) as cut_off:
        body = getattr(cut_off, "partial", b"")
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:300] or "no reason given"
