"""Serve one model with TF Serving's REST API, to try it on one machine.

    GET  /v1/models/NAME[/versions/N]             the states of its versions
    GET  /v1/models/NAME[/versions/N]/metadata    its signatures
    POST /v1/models/NAME[/versions/N]:predict     predictions
    GET  /                                        the playground, a page

Every error is JSON, {"error": "..."}, with TF Serving's status code. The event loop
only transfers bytes. A thread pool parses JSON and runs the model.
"""

import asyncio
import concurrent.futures
import contextlib
import logging as python_logging
import re
import signal
import socket
import urllib.parse
from collections.abc import Callable
from typing import Any

from absl import logging
from aiohttp import web
from google.protobuf import json_format

from official_bert.serving import json_tensors, playground, saved_model
from official_bert.serving.json_tensors import RequestError
from official_bert.serving.model_versions import ModelVersions

_PATH = re.compile(
    r"/v1/models(?:/(?P<name>[^/:]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
    r"(?P<action>/metadata|:classify|:regress|:predict)?)?",
    re.IGNORECASE,
)
# Versions are 64-bit numbers.
_HIGHEST_VERSION = 2**63 - 1
# Seconds to send a response at shutdown, in addition to the request's timeout.
_GRACE_S = 5
# aiohttp logs a traceback for each connection that does not use HTTP. This module logs
# the errors of requests.
python_logging.getLogger("aiohttp.server").setLevel(python_logging.CRITICAL)


class Server:
    """A server of one model.

    Attributes:
      versions: `ModelVersions` with a version loaded.
      unfinished: set of the futures of requests that are waiting or running.
    """

    def __init__(
        self,
        versions: ModelVersions,
        max_request_bytes: int = 32 << 20,
        timeout_s: float = 30.0,
        max_concurrent: int = 4,
        poll_s: float = 1.0,
    ):
        """Set the limits.

        Args:
          versions: `ModelVersions` with a version loaded.
          max_request_bytes: limit of a request's body, after decompression.
          timeout_s: seconds for a request, from its headers to its response.
          max_concurrent: number of requests that are computed at once. Others wait, and
            waiting counts toward `timeout_s`.
          poll_s: seconds between checks for new versions.
        """
        self.versions = versions
        self.unfinished: set[concurrent.futures.Future[bytes]] = set()
        self._max_request_bytes = max_request_bytes
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._pool = concurrent.futures.ThreadPoolExecutor(max_concurrent)

    def run(
        self, listener: socket.socket, announce: Callable[[], None], **options: Any
    ) -> None:
        """Serve until SIGINT or SIGTERM, then answer the requests already received.

        A second signal ends the process.

        Args:
          listener: listening socket.
          announce: function without arguments, called when the server is ready.
          **options: more arguments of `web.run_app`.
        """
        app = web.Application(
            client_max_size=self._max_request_bytes,
            middlewares=[playground.middleware([self.versions]), self._with_errors],
        )
        app.router.add_route("*", "/{path:.*}", self._answer)
        app.cleanup_ctx.append(self._background)
        app.on_shutdown.append(_let_next_signal_kill)
        web.run_app(
            app,
            sock=listener,
            print=lambda banner: announce(),
            access_log=None,
            shutdown_timeout=self._timeout_s + _GRACE_S,
            **options,
        )

    async def _background(self, app):
        """Check for new versions while the application runs."""
        polling = asyncio.create_task(self._poll())
        yield
        polling.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _poll(self):
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await asyncio.to_thread(self.versions.refresh)
            except Exception:  # An error must not end the checks.
                logging.exception("The check for new versions failed; trying again.")

    @web.middleware
    async def _with_errors(self, request, handler):
        """Respond to a request; errors have TF Serving's format."""
        message: str | None
        status = 400
        try:
            async with asyncio.timeout(self._timeout_s):
                body, status = await handler(request), 200
        except RequestError as error:
            message, status = str(error), error.status
        except TimeoutError:
            message = f"The request took longer than {self._timeout_s:g} s."
            status = 504
        except web.HTTPException as error:  # For example, a too large body.
            message, status = error.text, error.status
        except web.RequestPayloadError as error:
            message = f"The body of the request cannot be read: {error}"
        except RecursionError:
            message = "The lists or objects of the request are nested too deeply."
        except Exception as error:
            logging.exception("%s %s failed", request.method, request.path)
            message, status = f"{type(error).__name__}: {error}", 500
        if status != 200:
            body = json_tensors.dump({"error": message})
        return web.Response(body=body, status=status, content_type="application/json")

    async def _answer(self, request):
        """Return the body of the response to a request."""
        path = request.rel_url.raw_path
        if not path.lower().startswith("/v1/"):
            raise RequestError(f"Not found: {request.method} {path}", 404)
        match = _PATH.fullmatch(path)
        action = (match and match["action"] or "").lower()
        if not match or request.method != ("POST" if action[:1] == ":" else "GET"):
            raise RequestError(f"Malformed request: {request.method} {path}")
        if not match["name"]:
            raise RequestError("Missing model name in request.")
        if action in (":classify", ":regress"):
            raise RequestError(
                f"This server does not support {action[1:]}, only predict (a "
                "signature of predict may take serialized examples).",
                501,
            )
        if match["label"]:
            label = urllib.parse.unquote(match["label"])
            raise RequestError(f"Unrecognized servable version label: {label}")
        name, version = urllib.parse.unquote(match["name"]), match["version"]
        if version and (len(version) > 19 or int(version) > _HIGHEST_VERSION):
            raise RequestError(f"Failed to convert version: {version} to numeric.")
        version = int(version) if version else None
        if not action:
            return json_tensors.dump(_status(self.versions, name, version))
        if action == "/metadata":
            return json_tensors.dump(_metadata(self.versions.get(name, version), name))
        return await self._predict(name, version, await request.read())

    async def _predict(self, name, version, body):
        """Run `predict` in the pool."""
        bodies = [body]
        future = self._pool.submit(
            lambda: predict(self.versions.get(name, version), bodies.pop())
        )
        self.unfinished.add(future)
        future.add_done_callback(self.unfinished.discard)
        try:
            # A timeout cancels waiting requests, but cannot stop TensorFlow.
            return await asyncio.wrap_future(future)
        finally:
            # The pool keeps canceled functions for a while.
            bodies.clear()


async def _let_next_signal_kill(app):
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # Only the main thread gets signals.
            signal.signal(number, signal.SIG_DFL)


def predict(model: saved_model.SavedModel, body: bytes) -> bytes:
    """Return the response of a `SavedModel` to a `:predict` request, both bytes.

    Raises:
      RequestError: the request is invalid.
    """
    request = json_tensors.parse_request(body)
    name = request.get("signature_name") or saved_model.DEFAULT_SIGNATURE
    if name not in model.signatures:
        raise RequestError(
            f'Serving signature name: "{name}" not found in signature def'
        )
    specs = saved_model.input_specs(model.signatures[name])
    if not specs:
        raise RequestError(f"Failed to get input map for signature: {name}")
    arrays = json_tensors.read_inputs(request, specs)
    outputs = saved_model.run(model, name, arrays)
    if "instances" in request:
        return json_tensors.dump({"predictions": json_tensors.to_rows(outputs)})
    return json_tensors.dump({"outputs": json_tensors.to_columns(outputs)})


def _status(versions, name, version):
    """Return TF Serving's `GetModelStatusResponse` as a JSON object."""
    statuses = versions.statuses if name == versions.name else {}
    if version is None and not statuses:
        raise RequestError(f"Could not find any versions of model {name}", 404)
    if version is not None and version not in statuses:
        raise RequestError(f"Could not find version {version} of model {name}", 404)
    states = []
    for number in sorted(statuses, reverse=True) if version is None else [version]:
        state, error = statuses[number]
        status = {"error_code": "UNKNOWN" if error else "OK", "error_message": error}
        states.append({"version": str(number), "state": state, "status": status})
    return {"model_version_status": states}


def _metadata(model, name):
    """Return TF Serving's `GetModelMetadataResponse` as a JSON object."""
    signatures = {
        key: json_format.MessageToDict(
            signature,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for key, signature in model.signatures.items()
    }
    spec = {"name": name, "signature_name": "", "version": str(model.version)}
    return {
        "model_spec": spec,
        "metadata": {"signature_def": {"signature_def": signatures}},
    }
