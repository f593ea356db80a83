"""A server on a thread of its own that answers each request as a script says, however wrong."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"

Script = Callable[["Answering"], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(**body: Any) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def text(words: str, **more: Any) -> bytes:
    return event(choices=[{"index": 0, "text": words, "finish_reason": None}], **more)


def last(tokens: int, **usage: Any) -> bytes:
    counts = {"prompt_tokens": 8, "completion_tokens": tokens, **usage}
    return event(choices=[{"index": 0, "text": "", "finish_reason": "length"}], usage=counts)


@dataclass
class Answering:
    """One request, and the means to answer it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    path: str
    body: dict[str, Any]
    number: int

    async def say(self, *parts: bytes, pause_s: float = 0.0) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            if pause_s:
                await asyncio.sleep(pause_s)

    async def stream(self, *parts: bytes, pause_s: float = 0.0) -> None:
        await self.say(HEAD, *map(chunk, parts), pause_s=pause_s)

    async def stream_on(self, *parts: bytes) -> None:
        await self.say(*map(chunk, parts))

    async def whole(self, status: str, body: bytes, kind: str = "application/json") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        await self.say(head.encode() + body)

    def reset(self) -> None:
        """A reset and no polite end: what a server that is killed leaves behind."""
        transport: Any = self.writer.transport
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()


@dataclass
class Faulty:
    """Where it listens, and what it was asked."""

    script: Script
    pages: dict[str, Callable[[dict[str, Any]], bytes]] = field(
        default_factory=lambda: {"/v1/models": lambda _: b'{"data": [{"id": "faulty"}]}'}
    )
    address: str = ""
    asked: list[Answering] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line.split(":")[1]) for line in head.splitlines()
                     if line.lower().startswith("content-length:")), 0,
                )  # fmt: skip
                body = json.loads(await reader.readexactly(length) or b"{}")
                one = Answering(reader, writer, head.split()[1], body, len(self.asked))
                if one.path in self.pages:
                    await one.whole("200 OK", self.pages[one.path](one.body))
                elif "completions" not in one.path:
                    await one.whole("404 Not Found", b"{}")
                else:
                    self.asked.append(one)
                    await self.script(one)
        writer.close()


@contextmanager
def faulty(
    script: Script, pages: dict[str, Callable[[dict[str, Any]], bytes]] | None = None
) -> Iterator[Faulty]:
    """The server while the context lasts."""
    loop = asyncio.new_event_loop()
    made = Faulty(script) if pages is None else Faulty(script, pages)
    ready = threading.Event()

    async def start() -> asyncio.Server:
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        return server

    def run() -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(start())
        loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
