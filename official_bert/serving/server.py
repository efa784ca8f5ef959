"""A small server that speaks TF Serving's REST, for one model on one machine.

    GET  /v1/models/NAME[/versions/N]             the states of its versions
    GET  /v1/models/NAME[/versions/N]/metadata    its signatures
    POST /v1/models/NAME[/versions/N]:predict     answers

Every error is JSON, {"error": "..."}, under TF Serving's status codes. The event
loop only moves bytes; a pool of threads reads JSON and runs the model.
"""

import asyncio
import concurrent.futures
import dataclasses
import functools
import logging as python_logging
import re
import urllib.parse

from absl import logging
from aiohttp import web

from official_bert.serving import rest_requests, rest_responses, saved_model
from official_bert.serving.request_error import RequestError

# The numbers of versions are 64 bits wide.
_HIGHEST_VERSION = 2**63 - 1
_MODEL = (
    r"/v1/models/(?P<name>[^/:]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
)
_POST = re.compile(rf"{_MODEL}:(?P<method>classify|regress|predict)", re.I)
_GET = re.compile(rf"{_MODEL}(?P<metadata>/metadata)?", re.I)
_NO_NAME = re.compile(r"/v1/models(/metadata)?", re.I)
# aiohttp would show a traceback for whatever comes that is not quite HTTP. What
# goes wrong in answering a request is logged in this file.
_CONNECTIONS_LOG = python_logging.getLogger(f"{__name__}.connections")
_CONNECTIONS_LOG.setLevel(python_logging.CRITICAL)
# Beyond a request's own time, for its answer to go out.
_GRACE_S = 5


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the server takes on.

    Attributes:
      max_request_bytes: of the body of a request, unpacked if it is packed.
      timeout_s: seconds for a request, from its headers to its answer.
      max_concurrent: requests that are computed at once; more of them wait, and
        waiting counts against `timeout_s`.
      poll_s: seconds between looks for new versions.
    """

    max_request_bytes: int = 32 << 20
    timeout_s: float = 30.0
    max_concurrent: int = 4
    poll_s: float = 1.0


async def serve(versions, limits, bound_socket, on_ready, stop):
    """Serve until `stop` is set, then answer what has come in and return.

    Args:
      versions: `ModelVersions` with a version loaded.
      limits: `Limits`.
      bound_socket: socket that has its address; listening begins here.
      on_ready: function of no arguments, called when requests are taken.
      stop: `asyncio.Event`.

    Returns:
      how many requests that were given up are computed still: Python would wait
      for their threads before it ends.

    Raises:
      OSError: the socket cannot listen.
    """
    pool = concurrent.futures.ThreadPoolExecutor(limits.max_concurrent, "compute")
    unfinished = set()
    runner = web.AppRunner(
        make_app(versions, limits, pool, unfinished),
        access_log=None,
        logger=_CONNECTIONS_LOG,
        shutdown_timeout=limits.timeout_s + _GRACE_S,
    )
    await runner.setup()
    polling = asyncio.create_task(_poll(versions, limits.poll_s))
    try:
        await web.SockSite(runner, bound_socket).start()
        on_ready()
        await stop.wait()
    finally:
        polling.cancel()
        await runner.cleanup()
        pool.shutdown(wait=False, cancel_futures=True)
    return len(unfinished)


async def _poll(versions, seconds):
    """Look for new versions for ever; one that fails must not end that."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(versions.refresh)
        except Exception:
            logging.exception("Looking for new versions failed; trying again.")


def make_app(versions, limits, pool, unfinished):
    """Return the application.

    Args:
      versions: `ModelVersions`.
      limits: `Limits`.
      pool: executor that requests are computed in.
      unfinished: set that holds the futures of what is computed.
    """
    app = web.Application(
        client_max_size=limits.max_request_bytes,
        middlewares=[web.middleware(functools.partial(_with_errors, limits=limits))],
    )
    answer = functools.partial(
        _answer, versions=versions, limits=limits, pool=pool, unfinished=unfinished
    )
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def _with_errors(request, handler, limits):
    """Turn whatever goes wrong into TF Serving's form of an error."""
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await handler(request)
    except RequestError as error:
        return _error(str(error), error.status)
    except TimeoutError:
        return _error(f"The request took longer than {limits.timeout_s:g} s.", 504)
    except web.HTTPRequestEntityTooLarge:
        return _too_large(limits)
    except web.HTTPException as error:
        return _error(error.reason, error.status)
    except web.RequestPayloadError as error:
        return _error(f"The body of the request cannot be read: {error}", 400)
    except RecursionError:
        return _error("The lists or objects of the request are nested too deep.", 400)
    except Exception as error:
        logging.exception("%s %s failed", request.method, request.path)
        return _error(f"{type(error).__name__}: {error}", 500)


def _too_large(limits):
    return _error(
        f"The request has more than {limits.max_request_bytes} bytes, the most that "
        "this server takes.",
        413,
    )


def _error(message, status):
    return _json(rest_responses.dump({"error": message}), status)


def _json(body, status=200):
    return web.Response(body=body, status=status, content_type="application/json")


async def _answer(request, versions, limits, pool, unfinished):
    """Answer one request; see the top of the file for which there are."""
    path = request.rel_url.raw_path
    if not path.lower().startswith("/v1/"):
        raise RequestError(f"Not found: {request.method} {path}", 404)
    if request.method == "GET" and (match := _GET.fullmatch(path)):
        name, version = _model_of(match)
        if match["metadata"]:
            return _json(rest_responses.dump(_metadata(versions, name, version)))
        return _json(rest_responses.dump(_status(versions, name, version)))
    if request.method == "GET" and _NO_NAME.fullmatch(path):
        raise RequestError("Missing model name in request.")
    match = _POST.fullmatch(path)
    if request.method != "POST" or not match:
        raise RequestError(f"Malformed request: {request.method} {path}")
    if match["method"].lower() != "predict":
        raise RequestError(
            f"This server has no {match['method']}, only predict (whose signature "
            "may take serialized examples).",
            501,
        )
    if (request.content_length or 0) > limits.max_request_bytes:
        return _too_large(limits)
    name, version = _model_of(match)
    body = [await request.read()]
    compute = functools.partial(_predict_once, versions, name, version, body)
    try:
        return _json(await _computed(pool, unfinished, compute))
    finally:
        # The pool holds on to what it will not begin any more.
        body.clear()


def _predict_once(versions, name, version, body):
    """Answer the body that is in a list, and take it out."""
    return predict(versions, name, version, body.pop())


def _model_of(match):
    """Return (name, version or None) of a path."""
    if match["label"]:
        label = urllib.parse.unquote(match["label"])
        raise RequestError(f"Unrecognized servable version label: {label}")
    version = match["version"]
    if version and (len(version) > 19 or int(version) > _HIGHEST_VERSION):
        raise RequestError(f"Failed to convert version: {version} to numeric.")
    return urllib.parse.unquote(match["name"]), int(version) if version else None


async def _computed(pool, unfinished, function):
    """Return what a function returns in the pool.

    If this is cancelled, the function is not begun. One that has begun goes on
    to its end: nothing can stop TensorFlow in the middle.
    """
    future = pool.submit(function)
    unfinished.add(future)
    future.add_done_callback(unfinished.discard)
    return await asyncio.wrap_future(future)


def predict(versions, name, version, body):
    """Return the body of the answer to a `:predict`.

    Args:
      versions: `ModelVersions`.
      name: of the model that is asked for.
      version: number, or None for the one that is served.
      body: bytes of JSON.

    Raises:
      RequestError: the request cannot be answered.
    """
    request = rest_requests.parse(body)
    signature = rest_requests.signature_name(request)
    # Held to the end: another version may take over meanwhile.
    model = versions.get(name, version)
    specs = saved_model.inputs_of(model, signature)
    arrays, by_rows = rest_requests.read_inputs(request, specs)
    outputs = saved_model.run(model, signature, arrays)
    if by_rows:
        return rest_responses.dump({"predictions": rest_responses.as_rows(outputs)})
    return rest_responses.dump({"outputs": rest_responses.as_columns(outputs)})


def _status(versions, name, version):
    """Return TF Serving's `GetModelStatusResponse` as JSON has it."""
    statuses = versions.statuses if name == versions.name else {}
    if version is None and not statuses:
        raise RequestError(f"Could not find any versions of model {name}", 404)
    if version is not None and version not in statuses:
        raise RequestError(f"Could not find version {version} of model {name}", 404)
    asked = sorted(statuses, reverse=True) if version is None else [version]
    return {
        "model_version_status": [
            {
                "version": str(number),
                "state": statuses[number].state,
                "status": {
                    "error_code": "UNKNOWN" if statuses[number].error else "OK",
                    "error_message": statuses[number].error,
                },
            }
            for number in asked
        ]
    }


def _metadata(versions, name, version):
    """Return TF Serving's `GetModelMetadataResponse` as JSON has it."""
    model = versions.get(name, version)
    return {
        "model_spec": {
            "name": name,
            "signature_name": "",
            "version": str(model.version),
        },
        "metadata": {"signature_def": {"signature_def": model.signature_def}},
    }
