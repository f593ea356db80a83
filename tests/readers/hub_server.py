"""A hub on this machine: files by repository, redirects to a second server, and every mischief."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c" * 40


@dataclass
class Asked:
    """One request as it arrived."""

    server: str
    path: str
    range: str
    token: str


@dataclass
class FakeHub:
    """What the servers give, and what they were asked."""

    files: dict[str, bytes] = field(default_factory=dict)  # "org/name/file" → bytes
    statuses: dict[str, tuple[int, str]] = field(default_factory=dict)  # file → status, error code
    mischief: dict[str, str] = field(default_factory=dict)  # end of a file's name → what is done
    commit: str = COMMIT
    has_cdn: bool = False
    asked: list[Asked] = field(default_factory=list)
    sent_bytes: int = 0
    url: str = ""
    cdn_url: str = ""

    def put(self, repo: str, **files: Any) -> None:
        """Files of a repository; a dict is written as JSON, ``__`` in a name is a dot."""
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.files[f"{repo}/{name.replace('__', '.')}"] = data

    def paths(self, server: str = "hub") -> list[str]:
        """The files that a server was asked for."""
        return [asked.path.rpartition("/")[2] for asked in self.asked if asked.server == server]

    def listing(self, repo: str) -> bytes | None:
        """What the API says of a repository."""
        names = [name.removeprefix(f"{repo}/") for name in self.files if name.startswith(repo)]
        return (
            json.dumps({"siblings": [{"rfilename": n} for n in names]}).encode() if names else None
        )


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub and its second server, as long as the block lasts."""
    servers = [_server(hub, name) for name in ("hub", "cdn")]
    hub.url, hub.cdn_url = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        for server in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _server(hub: FakeHub, name: str) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"hub": hub, "server_name": name})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    return server


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    server_name: str
    protocol_version = "HTTP/1.1"
    timeout = 2

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.hub.asked.append(
            Asked(
                self.server_name,
                self.path,
                self.headers.get("Range", ""),
                self.headers.get("Authorization", ""),
            )
        )
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self) -> None:
        name = self._name()
        done = next((do for end, do in self.hub.mischief.items() if name.endswith(end)), "")
        data = self.hub.listing(name[4:]) if name.startswith("api/") else self.hub.files.get(name)
        status, error = self.hub.statuses.get(name, (200 if data is not None else 404, ""))
        if status != 200:
            self._send(status, b"no", {"X-Error-Code": error} if error else {})
        elif done.startswith("to:"):
            self._send(302, b"", {"Location": done[3:]})
        elif done:
            getattr(self, f"_{done}")(data)
        elif self.hub.has_cdn and self.server_name == "hub" and not name.endswith(".json"):
            self._redirect(data or b"")
        else:
            self._file(data or b"")

    def _name(self) -> str:
        """The file that a path names: org/name/resolve/REVISION/file, api/models/org/name."""
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        if parts[0] == "api":
            return "api/" + "/".join(parts[2:4])
        return "/".join(parts[:2] + parts[4:])

    def _redirect(self, data: bytes) -> None:
        told = {"X-Linked-Etag": _etag(data), "X-Repo-Commit": self.hub.commit}
        self._send(302, b"moved", told | {"Location": f"{self.hub.cdn_url}{self.path}?signed=1"})

    def _file(self, data: bytes) -> None:
        told = {"ETag": _etag(data), "X-Repo-Commit": self.hub.commit}
        if self.headers.get("If-None-Match") == _etag(data):
            self._send(304, b"", told)
            return
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, data, told)
            return
        begin, end = (int(part) for part in wanted.removeprefix("bytes=").split("-"))
        part = data[begin : end + 1]
        told["Content-Range"] = f"bytes {begin}-{begin + len(part) - 1}/{len(data)}"
        self._send(206, part, told)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # Mischief, by name.

    def _no_ranges(self, _: bytes) -> None:
        """200 to a range, and a body that never ends."""
        self._send(200, b"", {"Content-Length": str(1 << 40)})
        while self.hub.sent_bytes < 1 << 28:
            self.wfile.write(bytes(1 << 16))
            self.hub.sent_bytes += 1 << 16

    def _truncated(self, data: bytes) -> None:
        """Half of what was announced."""
        self._send(200, data[: len(data) // 2], {"Content-Length": str(len(data))})
        self.close_connection = True

    def _truncated_part(self, data: bytes) -> None:
        told = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}", "Content-Length": "99999"}
        self._send(206, data[:10], told)
        self.close_connection = True

    def _other_part(self, data: bytes) -> None:
        self._send(206, data[1:], {"Content-Range": f"bytes 1-{len(data) - 1}/{len(data)}"})

    def _no_content_range(self, data: bytes) -> None:
        self._send(206, data, {})

    def _first_part_alone(self, data: bytes) -> None:
        if not self.headers.get("Range", "").startswith("bytes=0-"):
            self._send(503, b"", {})
            return
        self._file(data)

    def _silent(self, _: bytes) -> None:
        time.sleep(0.6)
        self.close_connection = True

    def _reset(self, _: bytes) -> None:
        self.connection.close()
        self.close_connection = True

    def _zipped(self, data: bytes) -> None:
        self._send(200, data, {"Content-Encoding": "gzip"})

    def _chunked_without_end(self, _: bytes) -> None:
        self._send(200, b"", {"Transfer-Encoding": "chunked"})
        while self.hub.sent_bytes < 1 << 28:
            self.wfile.write(b"10000\r\n" + b"[" * (1 << 16) + b"\r\n")
            self.hub.sent_bytes += 1 << 16

    def _round(self, _: bytes) -> None:
        self._send(302, b"", {"Location": self.path})


def _etag(data: bytes) -> str:
    return f'"{sha256(data).hexdigest()}"'
