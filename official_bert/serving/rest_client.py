"""Asking a server that speaks TF Serving's REST: this project's, or the real one."""

import functools
import http.client
import ipaddress
import json
import urllib.error
import urllib.parse
import urllib.request

from official_bert.errors import UserError


def asker(url, name, version=None, signature=None, timeout_s=60.0):
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
    of_version = "" if version is None else f"/versions/{version}"
    path = f"/v1/models/{urllib.parse.quote(name, safe='')}{of_version}:predict"
    of_signature = {"signature_name": signature} if signature else {}
    return functools.partial(_predict, url.rstrip("/") + path, of_signature, timeout_s)


def _predict(url, of_signature, timeout_s, rows):
    body = json.dumps({**of_signature, "instances": rows}).encode("ascii")
    answer = _post(url, body, timeout_s)
    predictions = answer.get("predictions") if isinstance(answer, dict) else None
    if not isinstance(predictions, list) or len(predictions) != len(rows):
        raise UserError(
            f"{url} did not answer with a prediction for each row; is it TF Serving?"
        )
    return predictions


def _post(url, body, timeout_s):
    """Post JSON and return the JSON that comes back."""
    try:
        request = urllib.request.Request(
            url, body, {"Content-Type": "application/json"}, method="POST"
        )
        with _opener(url).open(request, timeout=timeout_s) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise UserError(
            f"{url} answered {error.code}: {_message_of(_body_of(error))}"
        ) from error
    except TimeoutError as error:
        raise UserError(
            f"{url} did not answer within {timeout_s:g} s; raise --timeout_s or ask "
            "for fewer rows at a time."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            reason = f"no answer within {timeout_s:g} s"
        raise UserError(
            f"Cannot reach {url} ({reason}); is the server running there?"
        ) from error
    except ValueError as error:
        raise UserError(
            f"{url} cannot be asked, or did not answer in JSON ({error}); give a URL "
            "such as http://127.0.0.1:8501."
        ) from error


def _body_of(error):
    """Return what came of the body of an answer."""
    try:
        return error.read()
    except (OSError, http.client.HTTPException) as cut:
        return getattr(cut, "partial", b"")


def _opener(url):
    """Return what opens a URL: without the proxy on this machine itself."""
    if _is_loopback(urllib.parse.urlsplit(url).hostname or ""):
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener()


def _is_loopback(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _message_of(body):
    """Return the error in the body of an answer, or the body's beginning."""
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:300] or "no reason given"
