"""Serve one model with TF Serving's REST API, to try it on one machine.

    GET  /v1/models/NAME[/versions/N]             the states of its versions
    GET  /v1/models/NAME[/versions/N]/metadata    its signatures
    POST /v1/models/NAME[/versions/N]:predict     predictions
    GET  /monitoring/prometheus/metrics           counts and times for Prometheus
    GET  /                                        the playground, a page

Every error is JSON, {"error": "..."}, with TF Serving's status code. The event loop
transfers bytes and reads small requests that can be joined. A thread pool parses the
other requests and runs the model for them. The threads of `Batcher` run the model for
joined requests.
"""

import asyncio
import concurrent.futures
import contextlib
import logging as python_logging
import re
import signal
import socket
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from absl import logging
from aiohttp import web
from google.protobuf import json_format

from official_bert.serving import (
    batching,
    json_tensors,
    metrics,
    playground,
    predictions,
)
from official_bert.serving.batching_parameters import BatchingParameters
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
# Limits of a request that the event loop reads and answers itself.
_SMALL_BYTES, _SMALL_ROWS = 8192, 16
# Seconds to send a response at shutdown, in addition to the request's timeout.
_GRACE_S = 5
# aiohttp logs a traceback for each connection that does not use HTTP. This module logs
# the errors of requests.
python_logging.getLogger("aiohttp.server").setLevel(python_logging.CRITICAL)


class Server:
    """A server of one model.

    Attributes:
      versions: `ModelVersions` with a version loaded.
      metrics: `Metrics` of its requests.
      unfinished: set of the futures of requests that are waiting or running.
    """

    def __init__(
        self,
        versions: ModelVersions,
        max_request_bytes: int = 32 << 20,
        timeout_s: float = 30.0,
        max_concurrent: int = 4,
        poll_s: float = 1.0,
        batching_parameters: BatchingParameters | None = None,
    ):
        """Set the limits.

        Args:
          versions: `ModelVersions` with a version loaded.
          max_request_bytes: limit of a request's body, after decompression.
          timeout_s: seconds for a request, from its headers to its response.
          max_concurrent: number of requests that are computed at once. Others wait, and
            waiting counts toward `timeout_s`.
          poll_s: seconds between checks for new versions.
          batching_parameters: how requests are joined; None computes each alone.
        """
        self.versions = versions
        self.metrics = metrics.Metrics(versions.name)
        self.unfinished: set[concurrent.futures.Future[Any]] = set()
        self._max_request_bytes = max_request_bytes
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._batching = batching_parameters
        self._batcher: batching.Batcher | None = None
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
        app.router.add_get(metrics.PATH, self._show_metrics)
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
        """Check for new versions and compute batches while the application runs."""
        polling = asyncio.create_task(self._poll())
        if self._batching:
            self._batcher = batching.Batcher(self._batching)
        yield
        polling.cancel()
        if self._batcher:
            self._batcher.close()
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
        status, began = 400, time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                body, status = await handler(request), 200
            if isinstance(body, web.Response):
                return body
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
        if request.path.lower().endswith(":predict"):
            self.metrics.count_request(status, time.monotonic() - began)
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

    async def _show_metrics(self, request):
        return web.Response(
            body=self.metrics.text(), headers={"Content-Type": metrics.CONTENT_TYPE}
        )

    async def _predict(self, name, version, body):
        """Return the response to a `:predict` request."""
        if self._batcher and len(body) <= _SMALL_BYTES:
            # Reading it here takes less time than a change of threads.
            prepared = predictions.prepare(self.versions.get(name, version), body)
            is_small = predictions.num_rows(prepared.arrays) <= _SMALL_ROWS
            if prepared.is_joinable and is_small:
                outputs = await self._finished(self._submit(prepared))
                return predictions.respond(prepared, outputs)
        bodies = [body]
        try:
            # The pool keeps canceled functions for a while, so they hold no body.
            begun = await self._in_pool(self._begin, name, version, bodies)
        finally:
            bodies.clear()
        if isinstance(begun, bytes):
            return begun
        prepared, outputs = begun
        return await self._in_pool(
            predictions.respond, prepared, await self._finished(outputs)
        )

    def _begin(self, name, version, bodies):
        """Return the response, or (request, future of its outputs) if it is joined."""
        prepared = predictions.prepare(self.versions.get(name, version), bodies.pop())
        if not self._batcher or not prepared.is_joinable:
            return predictions.respond(prepared, self._run(prepared, prepared.arrays))
        return prepared, self._submit(prepared)

    def _submit(self, prepared):
        """Return the future of the outputs of a request that may be joined."""
        assert self._batcher
        return self._batcher.submit(
            lambda arrays: self._run(prepared, arrays),
            (prepared.model, prepared.signature),
            prepared.arrays,
        )

    def _run(self, prepared, arrays):
        """Run the signature of a request."""
        began = time.monotonic()
        outputs = predictions.run(prepared, arrays)
        self.metrics.count_batch(predictions.num_rows(arrays), time.monotonic() - began)
        return outputs

    async def _in_pool(self, function, *arguments):
        return await self._finished(self._pool.submit(function, *arguments))

    async def _finished(self, future):
        """Wait for a future. A timeout cancels it, but cannot stop TensorFlow."""
        self.unfinished.add(future)
        future.add_done_callback(self.unfinished.discard)
        return await asyncio.wrap_future(future)


async def _let_next_signal_kill(app):
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # Only the main thread gets signals.
            signal.signal(number, signal.SIG_DFL)


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
