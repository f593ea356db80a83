"""What is sent may be so large; and what is answered may do nothing but be shown."""

from __future__ import annotations

import asyncio
import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kvplan._version import __version__

MAX_BODY = 68 << 20  # a GGUF's header and the form around it
MAX_API_BODY = 8 << 20
SENDING_S = 60.0  # a request has come by then, or is given up
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class _TooLarge(Exception):
    """More came than may."""


class _TooSlow(Exception):
    """It did not come in time."""


class Guard:
    """Counts what is sent, refuses what another site's page sends, and adds the headers."""

    def __init__(
        self, app: ASGIApp, hosts: frozenset[str] | None = None, sending_s: float = SENDING_S
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.sending_s = sending_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request within its limits."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self._refused(scope, headers)
        if refused is not None:
            await _refuse(send, *refused)
            return
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            await self.app(scope, self._counted(scope, receive), guarded)
        except _TooLarge:
            if not began:
                await _refuse(send, 413, _too_large(scope))
        except _TooSlow:
            if not began:
                said = f"What is sent has not come within {self.sending_s:g} s."
                await _refuse(send, 408, said)

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """The status and sentence of a request that is not served."""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > _most(scope):
            return 413, _too_large(scope)
        host = headers.get(b"host", b"").decode("latin-1").rpartition("]")[2]
        name = host.partition(":")[0].lower()
        bracketed = b"[" in headers.get(b"host", b"")
        if self.hosts is not None and not bracketed and name not in self.hosts:
            # A page of another site that makes its name mean this machine.
            return 421, f"This server is not {name[:80]!r}."
        return None

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        seen, most, whole = 0, _most(scope), False
        until = asyncio.get_running_loop().time() + self.sending_s

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:  # what comes now is that the client went away
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise _TooSlow from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > most:
                raise _TooLarge
            return message

        return counted


def _most(scope: Scope) -> int:
    return MAX_API_BODY if scope["path"].startswith("/api/") else MAX_BODY


def _too_large(scope: Scope) -> str:
    return f"What is sent is larger than the {_most(scope) >> 20} MiB that are read."


async def _refuse(send: Send, status: int, message: str) -> None:
    error = {"code": "bad_question", "message": message, "hint": ""}
    body = json.dumps({"kvplan": __version__, "verb": "", "error": error}).encode()
    headers = [(b"content-type", b"application/json"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
