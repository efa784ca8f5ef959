"""A test server for Cloud Storage's JSON API, for TensorFlow's own client.

    python gcs_server.py CERTIFICATE KEY [PORT [ADDRESS]]

It keeps objects in memory and supports the requests of TensorFlow 2.20 and 2.21:
metadata, lists with a delimiter and pages, media with ranges, simple and resumable
uploads, `rewriteTo`, deletion, with generations and their preconditions.
`POST /test/faults` with a JSON object sets the faults; `GET /test/requests` returns
the requests so far. `GET /test/objects` lists all objects with their sizes,
`POST /test/delete` deletes one, and `GET /test/held` reports whether a request is
held. It needs only the standard library.
"""

import base64
import dataclasses
import hashlib
import http.server
import json
import random
import ssl
import sys
import threading
import time
import urllib.parse

_PAGE = 10  # Objects per page of a list, so that clients must read several pages.


@dataclasses.dataclass
class Faults:
    """The faults of the server.

    Attributes:
      latency: seconds before each response.
      slow: share of the requests that take `slow_seconds` more.
      failing: share of the requests that get status 503 or 429.
      cut: share of the transfers whose connection breaks in the middle.
      deny: prefix -> status of all responses about its objects.
      deny_writes: the same for uploads, copies and deletions only.
      token: whether requests without an access token get status 401.
      hold: [verb, part of an object's name, "before" or "after"]: such a request
        gets no response, and takes effect only with "after".
      seed: seed of the random numbers.
    """

    latency: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 1.0
    failing: float = 0.0
    cut: float = 0.0
    deny: dict[str, int] = dataclasses.field(default_factory=dict)
    deny_writes: dict[str, int] = dataclasses.field(default_factory=dict)
    token: bool = False
    hold: tuple[str, ...] = ()
    seed: int = 0


class Store:
    """The objects of buckets, each with a generation."""

    def __init__(self, buckets):
        self.buckets = set(buckets)
        self.objects = {}  # (bucket, name) -> (bytes, generation, time)
        self.uploads = {}  # id -> (bucket, name, bytearray, precondition)
        self.lock = threading.RLock()
        self.generation = 1000
        self.requests = []
        self.configure({})

    def configure(self, faults):
        self.faults, self.is_holding = Faults(**faults), False
        self.random = random.Random(self.faults.seed)

    def sizes(self):
        with self.lock:
            return {f"{b}/{n}": len(o[0]) for (b, n), o in self.objects.items()}

    def put(self, bucket, name, data, expected):
        """Store an object; return None if its generation is not the expected one."""
        with self.lock:
            current = self.objects.get((bucket, name), (b"", 0, ""))[1]
            if expected is not None and int(expected) != current:
                return None
            self.generation += 1
            now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            self.objects[bucket, name] = (bytes(data), self.generation, now)
            return self.metadata(bucket, name)

    def metadata(self, bucket, name):
        data, generation, updated = self.objects[bucket, name]
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "generation": str(generation),
            "size": str(len(data)),
            "updated": updated,
            "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode(),
        }

    def listing(self, bucket, query):
        """Return a page of a list in the API's format."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries = set()
        for owner, name in list(self.objects):
            if owner == bucket and name.startswith(prefix):
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    entries.add((prefix + rest.split(delimiter)[0] + delimiter, True))
                else:
                    entries.add((name, False))
        size = min(int(query.get("maxResults", _PAGE)), _PAGE)
        ordered = sorted(entries)
        start = int(query.get("pageToken", 0))
        page = ordered[start : start + size]
        answer = {
            "items": [self.metadata(bucket, n) for n, folder in page if not folder],
            "prefixes": [name for name, folder in page if folder],
        }
        if start + size < len(ordered):
            answer["nextPageToken"] = str(start + size)
        return {key: value for key, value in answer.items() if value}


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles one connection."""

    protocol_version = "HTTP/1.1"
    # An answer is one packet: the client's delayed acknowledgement would take 40 ms.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, *_):
        pass

    def handle_expect_100(self):
        # The client sends its data a second later if this is not sent at once.
        is_continued = super().handle_expect_100()
        self.wfile.flush()
        return is_continued

    def do_GET(self):
        path, query = self._parts()
        if path == "/test/requests":
            return self._answer(200, self.store.requests)
        if path == "/test/objects":
            return self._answer(200, self.store.sizes())
        if path == "/test/held":
            return self._answer(200, self.store.is_holding)
        if self._has_failed(path):
            return None
        if path.startswith("/storage/v1/b/"):
            return self._metadata(path, query)
        bucket, _, name = urllib.parse.unquote(path).lstrip("/").partition("/")
        return self._media(bucket, name)

    def do_POST(self):
        path, query = self._parts()
        body = self._body()
        if path == "/test/faults":
            self.store.configure(json.loads(body))
            return self._answer(200, {})
        if path == "/test/delete":
            bucket, _, name = json.loads(body).partition("/")
            return self._answer(200, bool(self.store.objects.pop((bucket, name), ())))
        if self._has_failed(f"{path}/{query.get('name', '')}"):
            return None
        parts = path.split("/")
        if path.startswith("/upload/storage/v1/b/"):
            bucket = parts[5]
            if bucket not in self.store.buckets:
                return self._answer(404, {})
            name = query.get("name") or json.loads(body or b"{}")["name"]
            expected = query.get("ifGenerationMatch")
            if query.get("uploadType") == "media":
                return self._stored(bucket, name, body, expected)
            with self.store.lock:
                number = f"upload-{len(self.store.uploads)}"
                self.store.uploads[number] = (bucket, name, bytearray(), expected)
            where = f"https://{self.headers['Host']}{path}?upload_id={number}"
            return self._answer(200, {}, {"Location": where})
        if "rewriteTo" in parts or "copyTo" in parts:
            return self._rewrite(parts, query)
        return self._answer(404, {})

    def do_PUT(self):
        path, query = self._parts()
        if query.get("upload_id") not in self.store.uploads:
            self._body()
            return self._answer(404, {})
        bucket, name, data, expected = self.store.uploads[query["upload_id"]]
        if self._is_held(name, "before"):
            return None
        body = self._body()
        if self._has_failed(f"{bucket}/{name}"):
            return None
        if self.is_cut and body and not data:
            # The store has kept the first half when the connection ends.
            data[:] = body[: len(body) // 2]
            return self._hang_up()
        scope = self.headers.get("Content-Range", "").removeprefix("bytes ")
        first, _, total = scope.partition("/")
        if first == "*" and total in ("*", ""):
            return self._progress(data)
        if first not in ("*", ""):
            start = int(first.split("-")[0])
            data[start:] = body
        if total not in ("*", "") and len(data) < int(total):
            return self._progress(data)
        return self._stored(bucket, name, data, expected)

    def do_DELETE(self):
        path, query = self._parts()
        if self._has_failed(path):
            return None
        bucket, name = self._object(path)
        if self._is_held(name, "before"):
            return None
        with self.store.lock:
            if (bucket, name) not in self.store.objects:
                return self._answer(404, {})
            expected = query.get("ifGenerationMatch")
            if expected not in (None, str(self.store.objects[bucket, name][1])):
                return self._answer(412, {})
            del self.store.objects[bucket, name]
        return self._answer(204, None)

    def _metadata(self, path, query):
        parts = path.split("/")
        bucket = parts[4]
        if bucket not in self.store.buckets:
            return self._answer(404, {})
        if len(parts) == 5:
            return self._answer(200, {"name": bucket, "location": "TEST"})
        if len(parts) == 6:
            return self._answer(200, self.store.listing(bucket, query))
        bucket, name = self._object(path)
        if query.get("alt") == "media":
            return self._media(bucket, name)
        if (bucket, name) not in self.store.objects:
            return self._answer(404, {})
        return self._answer(200, self.store.metadata(bucket, name))

    def _media(self, bucket, name):
        if (bucket, name) not in self.store.objects:
            return self._answer(404, {})
        data = self.store.objects[bucket, name][0]
        scope = self.headers.get("Range", "").removeprefix("bytes=")
        if not scope:
            return self._send(200, data)
        first, _, last = scope.partition("-")
        start, stop = int(first), int(last or len(data) - 1) + 1
        if start >= len(data):
            return self._send(416, b"")
        return self._send(206, data[start:stop])

    def _rewrite(self, parts, query):
        middle = parts.index("rewriteTo" if "rewriteTo" in parts else "copyTo")
        source = parts[4], urllib.parse.unquote(parts[6])
        bucket, name = parts[middle + 2], urllib.parse.unquote(parts[middle + 4])
        if source not in self.store.objects:
            return self._answer(404, {})
        data = self.store.objects[source][0]
        stored = self.store.put(bucket, name, data, query.get("ifGenerationMatch"))
        if stored is None:
            return self._answer(412, {})
        return self._answer(200, {"done": True, "resource": stored})

    def _stored(self, bucket, name, data, expected):
        if bucket not in self.store.buckets:
            return self._answer(404, {})
        stored = self.store.put(bucket, name, data, expected)
        if self._is_held(name, "after"):
            return None
        return self._answer(412, {}) if stored is None else self._answer(200, stored)

    def _is_held(self, name, moment):
        """Keep a request that is to be held, until the faults change."""
        faults = self.store.faults
        if not faults.hold:
            return False
        verb, part, when = faults.hold
        if (self.command, moment) != (verb, when) or part not in name:
            return False
        self.store.is_holding = True
        while self.store.faults is faults:
            time.sleep(0.01)
        self._hang_up()
        return True

    def _hang_up(self):
        self.close_connection = True

    def _progress(self, data):
        headers = {"Range": f"bytes=0-{len(data) - 1}"} if data else {}
        return self._answer(308, None, headers)

    def _parts(self):
        parsed = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parsed.query, keep_blank_values=True))
        return parsed.path, query

    def _object(self, path):
        """Return the bucket and name of /storage/v1/b/BUCKET/o/NAME."""
        parts = path.split("/")
        return parts[4], urllib.parse.unquote(parts[6])

    def _body(self):
        """Return the body; the client sends chunks with a wrong length header."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self._read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self._line().split(b";")[0], 16):
            body += self._read(size)
            self._line()
        self._line()
        return body

    def _read(self, size):
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError("the client ended in the middle of a body")
        return data

    def _line(self):
        line = self.rfile.readline()
        if not line:
            raise ConnectionResetError("the client ended in the middle of a body")
        return line

    def _has_failed(self, path):
        """Send a fault if this request should fail; return whether it did."""
        store, faults = self.store, self.store.faults
        with store.lock:
            store.requests.append(f"{self.command} {self.path}")
            draws = [store.random.random() for _ in range(3)]
        time.sleep(faults.latency + (draws[0] < faults.slow) * faults.slow_seconds)
        self.is_cut = draws[1] < faults.cut
        name = urllib.parse.unquote(path)
        is_write = self.command != "GET"
        denied = faults.deny | (faults.deny_writes if is_write else {})
        words = self.headers.get("Authorization", "").split()
        if faults.token and len(words) < 2:  # "Bearer" and the token.
            denied = {"": 401}
        for prefix, status in denied.items():
            if prefix in name:
                reason = {"error": {"code": status, "message": "denied by the test"}}
                self._answer(status, reason)
                return True
        if draws[2] < faults.failing:
            self._answer(503 if draws[2] < faults.failing / 2 else 429, {})
            return True
        return False

    def _answer(self, status, value, headers=()):
        body = b"" if value is None else json.dumps(value).encode()
        self._send(status, body, {"Content-Type": "application/json", **dict(headers)})

    def _send(self, status, body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if getattr(self, "is_cut", False) and len(body) > 1:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            return self._hang_up()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    """A server whose clients may be killed in the middle of a request."""

    daemon_threads = True
    # A client opens many connections at the same time.
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(certificate, key, port, buckets=("bucket",), address="127.0.0.1"):
    """Return a server; `serve_forever` runs it."""
    handler = type("StoreHandler", (Handler,), {"store": Store(buckets)})
    server = Server((address, port), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    return server


if __name__ == "__main__":
    certificate, key, *rest = sys.argv[1:]
    port, address = (*rest, *("443", "127.0.0.1")[len(rest) :])
    served = serve(certificate, key, int(port), address=address)
    print("ready", flush=True)
    served.serve_forever()
