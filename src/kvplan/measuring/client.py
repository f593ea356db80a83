"""A client of one server: a few connections that are kept, plain questions and streams.

The API key comes from the environment and goes nowhere but into the header of a request. There are
no redirects and no proxies: what is measured is the server that was named.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import h11

from kvplan._version import __version__
from kvplan.core.errors import BadValue
from kvplan.measuring.connection import Connection, Limits
from kvplan.measuring.failures import CONNECT_TIMEOUT, MALFORMED, REFUSED, RESET, Failed
from kvplan.measuring.reply import Reply

KEYS: Final = ("KVPLAN_API_KEY", "OPENAI_API_KEY")
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1", "[::1]")


class Address:
    """A server's address, taken apart: ``http://HOST:PORT`` with or without ``/v1``."""

    def __init__(self, given: str) -> None:
        text = given if "://" in given else f"http://{given}"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise BadValue(f"{given[:100]!r} is no address.", "As http://localhost:8000.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise BadValue(
                "An address is http://HOST:PORT, without a name and password in it.",
                "kvplan measure http://localhost:8000, or kvplan measure --embedded.",
            )
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port or (443 if self.is_tls else 80)
        self.netloc = parts.netloc
        self.base = parts.path.rstrip("/").removesuffix("/v1")

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine, by its name."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.netloc}{self.base}"


def api_key() -> str:
    """The key of the environment, empty where there is none."""
    return next((os.environ[name] for name in KEYS if os.environ.get(name)), "")


class Client:
    """Requests to one server. Close it when done."""

    def __init__(self, address: Address, limits: Limits) -> None:
        self.address = address
        self.limits = limits
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._tls = ssl.create_default_context() if address.is_tls else None
        key = api_key()
        self._headers = [
            ("Host", address.netloc),
            ("User-Agent", f"kvplan/{__version__}"),
            ("Accept", "text/event-stream, application/json, text/plain"),
            ("Content-Type", "application/json"),
            *([("Authorization", f"Bearer {key}")] if key else []),
        ]

    async def stream(self, path: str, body: Mapping[str, Any]) -> Reply:
        """A streamed answer; how it failed is in it."""
        started = time.perf_counter()
        try:
            reply, _ = await self._send("POST", path, body, streams=True)
        except Failed as failed:
            now = time.perf_counter()
            return Reply(sent_s=started, ended_s=now, failure=failed.kind, detail=failed.detail)
        return reply

    async def text(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """A whole answer: GET, or POST where there is a body.

        Raises:
            Failed: there is none.
        """
        method = "GET" if body is None else "POST"
        reply, data = await self._send(method, path, body, streams=False)
        if reply.failure is not None:
            raise Failed(reply.failure, reply.detail)
        return data

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A whole answer as JSON.

        Raises:
            Failed: there is none, or it is no JSON.
        """
        data = await self.text(path, body)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise Failed(MALFORMED, f"{path} answers no JSON") from None

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, streams: bool
    ) -> tuple[Reply, bytes]:
        """The answer, and its body where it is no stream.

        A server may hang up on a connection that waits, just when the next request goes out: that
        is no failure of the request, which is sent once more on a new one.
        """
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = [*self._headers, ("Content-Length", str(len(data)))]
        request = h11.Request(method=method, target=self.address.base + path, headers=headers)
        connection, is_resent = await self._connection(), False
        while True:
            try:
                reply = await connection.exchange(request, data, streams=streams)
            finally:
                self._put_back(connection)
            reply.is_resent = is_resent
            if reply.failure != RESET or not connection.was_stale:
                return reply, connection.body
            connection, is_resent = await self._new(), True

    def _put_back(self, connection: Connection) -> None:
        if connection.is_idle:
            self._idle.append(connection)
        else:
            self._all.discard(connection)
            connection.close()

    async def _connection(self) -> Connection:
        """One that waits, else a new one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle:
                return connection
            self._all.discard(connection)
        return await self._new()

    async def _new(self) -> Connection:
        loop = asyncio.get_running_loop()
        where = self.address
        try:
            async with asyncio.timeout(self.limits.connect_s):
                _, made = await loop.create_connection(
                    lambda: Connection(self.limits), where.host, where.port, ssl=self._tls
                )
        except TimeoutError:
            raise Failed(CONNECT_TIMEOUT, f"no answer in {self.limits.connect_s:g} s") from None
        except OSError as error:  # certificates and names that nobody knows, too
            raise Failed(REFUSED, str(error)) from None
        self._all.add(made)
        return made

    async def close(self) -> None:
        """Hang up everywhere."""
        for connection in self._all:
            connection.close()
        self._idle.clear()
        self._all.clear()
        await asyncio.sleep(0)
