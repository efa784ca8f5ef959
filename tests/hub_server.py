"""A server that responds like Hugging Face, Kaggle and a store of zip files.

It implements the parts that downloads need: metadata, `resolve`, redirects, ETags,
range requests, refusals, and connections that break.
"""

import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER_COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
WEIGHTS = (".safetensors", ".bin", ".h5")


class HubServer(http.server.ThreadingHTTPServer):
    """A server on a free port of this machine.

    Attributes:
      repositories: id -> revision -> file -> bytes.
      commits: revision -> commit.
      redirects: id without owner -> id.
      gated: ids whose files need a token.
      archives: path below /files/ -> bytes.
      presets: handle without version -> (newest version, file -> bytes).
      faults: path -> list of faults for its next requests: a status, or ("cut",
        number), the number of bytes after which the connection breaks.
      requests: (method, path, value of the header Range) of all requests so far.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories, self.commits = {}, {"main": COMMIT, "v2": LATER_COMMIT}
        self.redirects, self.gated = {}, set()
        self.archives, self.presets = {}, {}
        self.faults, self.requests = {}, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def paths(self, method=None):
        """Return the paths of the requests, or of those with a method."""
        return [path for verb, path, _ in self.requests if method in (None, verb)]

    def handle_error(self, request, client_address):
        """Ignore clients that closed their connection."""


@contextlib.contextmanager
def running():
    """Start a `HubServer`; stop it at the end."""
    with HubServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise each response waits for an acknowledgment.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        """Print nothing."""

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        self._answer(json.loads(self.rfile.read(length) or "{}"))

    def _answer(self, body=None):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        self.server.requests.append((self.command, path, self.headers.get("Range")))
        faults = self.server.faults.get(path, [])
        # A connection breaks only while bytes are sent.
        skips = faults and self.command == "HEAD" and not isinstance(faults[0], int)
        fault = faults.pop(0) if faults and not skips else None
        if isinstance(fault, int):
            return self._refuse(fault)
        cut = fault[1] if fault else None
        if path.startswith("/files/"):
            return self._send_file(self.server.archives.get(path[7:]), cut)
        if path.startswith("/v1/"):
            return self._answer_kaggle(path.rpartition("/")[2], body)
        if path.startswith("/kaggle/"):
            handle, _, name = path[8:].partition("//")
            files = self.server.presets[handle.rpartition("/")[0]][1]
            return self._send_file(files.get(name), cut)
        return self._answer_hugging_face(path, cut)

    def _answer_hugging_face(self, path, cut):
        patterns = (
            r"/api/models/(?P<id>[^/]+(/[^/]+)?)/revision/(?P<revision>.+)",
            r"/api/models/(?P<id>[^/]+(/[^/]+)?)",
            r"/(?P<id>[^/]+(/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<file>.+)",
            r"/cdn/(?P<id>[^/]+(/[^/]+)?)/(?P<revision>[0-9a-f]{40})/(?P<file>.+)",
        )
        match = next(filter(None, (re.fullmatch(each, path) for each in patterns)))
        found = match.groupdict()
        repository, revision = found["id"], found.get("revision", "main")
        if repository in self.server.redirects:
            full = self.server.redirects[repository]
            return self._redirect(self.path.replace(repository, full, 1), 307)
        if repository not in self.server.repositories:
            return self._refuse(401, "RepoNotFound")
        revisions = self.server.repositories[repository]
        commit = self.server.commits.get(revision, revision)
        files = revisions.get(commit)
        if files is None:
            return self._refuse(404, "RevisionNotFound")
        if "file" not in found:
            return self._send_info(repository, commit, files)
        if repository in self.server.gated and not self.headers.get("Authorization"):
            return self._refuse(403, "GatedRepo")
        commit_header = {"X-Repo-Commit": commit}
        data = files.get(found["file"])
        if data is None:
            return self._refuse(404, "EntryNotFound", commit_header)
        if found["file"].endswith(WEIGHTS) and "/resolve/" in path:
            linked = {"X-Linked-Size": str(len(data)), "X-Linked-Etag": _etag(data)}
            target = f"/cdn/{repository}/{commit}/{found['file']}"
            return self._redirect(target, 302, commit_header | linked)
        return self._send_file(data, cut, commit_header)

    def _send_info(self, repository, commit, files):
        siblings = [{"rfilename": n, "size": len(d)} for n, d in files.items()]
        info = {"id": repository, "sha": commit, "siblings": siblings}
        self._send_json({"_id": "1", "private": False, **info})

    def _answer_kaggle(self, request, body):
        handle = "{ownerSlug}/{modelSlug}/{framework}/{instanceSlug}".format(**body)
        handle = handle.replace("MODEL_FRAMEWORK_", "").lower()
        if handle not in self.server.presets:
            return self._refuse(404)
        version, files = self.server.presets[handle]
        if request == "GetModelInstance":
            return self._send_json({"versionNumber": version})
        if body["path"] not in files:
            return self._refuse(404)
        number = body["versionNumber"]
        return self._redirect(f"/kaggle/{handle}/{number}//{body['path']}", 302)

    def _send_json(self, value):
        data = json.dumps(value).encode()
        self._begin(200, {"Content-Type": "application/json"}, len(data))
        self.wfile.write(data)

    def _redirect(self, target, status, headers=None):
        self._begin(status, {"Location": target, **(headers or {})}, 0)

    def _refuse(self, status, code=None, headers=None):
        codes = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self._begin(status, codes | (headers or {}), 0)

    def _send_file(self, data, cut=None, headers=None):
        """Send bytes, or the requested range if the file is the same."""
        if data is None:
            return self._refuse(404)
        etag, start, status = _etag(data), 0, 200
        headers = {"ETag": etag, "Accept-Ranges": "bytes", **(headers or {})}
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if match and self.headers.get("If-Range", etag) == etag:
            start, status = int(match[1]), 206
            if start >= len(data):
                return self._refuse(416)
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._begin(status, headers, len(data) - start)
        if self.command != "HEAD":
            end = len(data) if cut is None else start + cut
            self.wfile.write(data[start:end])
            if cut is not None:
                self.close_connection = True

    def _begin(self, status, headers, length):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()


def _etag(data):
    return f'"{hashlib.sha256(data).hexdigest()}"'
