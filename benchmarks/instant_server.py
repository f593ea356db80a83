"""An OpenAI-compatible server that answers at once: what a client needs beside it is its overhead.

    python -m benchmarks.instant_server [TOKENS]      prints its address, serves until stdin closes

Every token is a write of its own, at the moment the request is there; nothing is computed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Final

TOKENS: Final = int(sys.argv[1]) if len(sys.argv) > 1 else 16
LENGTH: Final = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
WANTED: Final = re.compile(rb'"(?:max_tokens|max_completion_tokens)":\s*(\d+)')
MODELS: Final = {"object": "list", "data": [{"id": "instant", "object": "model"}]}


def chunk(data: bytes) -> bytes:
    """A chunk of HTTP/1.1."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(body: dict[str, object]) -> bytes:
    """A server-sent event."""
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
PIECES: Final[dict[bool, dict[str, object]]] = {
    False: {"text": " token"},
    True: {"delta": {"content": " token"}},
}
TOKEN: Final = {
    is_chat: event({"model": "instant", "choices": [{"index": 0, "finish_reason": None, **piece}]})
    for is_chat, piece in PIECES.items()
}
END: Final = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def last(tokens: int, *, is_chat: bool) -> bytes:
    """The chunk that ends a stream, with its usage."""
    piece: dict[str, object] = {"delta": {}} if is_chat else {"text": ""}
    choice = {"index": 0, "finish_reason": "length", **piece}
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
    return event({"model": "instant", "choices": [choice], "usage": usage})


class Instant(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            found = LENGTH.search(head)
            length = int(found[1]) if found else 0
            if len(rest) < length:
                return
            self.answer(head, rest[:length])
            self.buffer = rest[length:]

    def answer(self, head: bytes, body: bytes) -> None:
        """A stream for a completion, the model for anything else."""
        if not head.startswith(b"POST") or b"completions" not in head.split(b"\r\n", 1)[0]:
            line = head.split(b"\r\n", 1)[0]
            data = json.dumps(MODELS if b"/v1/models" in line else {}).encode()
            status = b"200 OK" if b"/v1/models" in line or b"/health" in line else b"404 Not Found"
            self.transport.write(
                b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (status, len(data), data)
            )
            return
        is_chat = b"chat" in head.split(b"\r\n", 1)[0]
        wanted = WANTED.search(body)
        tokens = int(wanted[1]) if wanted else TOKENS
        if b'"stream": true' not in body and b'"stream":true' not in body:
            self.whole(tokens, is_chat=is_chat)
            return
        self.transport.write(HEAD)
        for _ in range(tokens):
            self.transport.write(TOKEN[is_chat])
        self.transport.write(last(tokens, is_chat=is_chat) + END)

    def whole(self, tokens: int, *, is_chat: bool) -> None:
        """An answer that is no stream."""
        text = " token" * tokens
        said = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
        choice = {"index": 0, "finish_reason": "length", **said}
        data = json.dumps(
            {"id": "1", "model": "instant", "choices": [choice], "usage": usage}
        ).encode()
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(data), data)
        )


async def serve() -> None:
    """Until nobody waits any more."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Instant, "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(serve())
