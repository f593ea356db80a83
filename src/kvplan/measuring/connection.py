"""One HTTP/1.1 connection that streams: every chunk has the time at which its bytes arrived.

    bytes ─► time ─► h11 ─► server-sent events ─► Reply        all in the callback of the socket

There is no task to be woken between a chunk and its time, which is what keeps the overhead of a
stream small; a task waits for the whole answer alone. Limits of time are watched by one timer.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import h11

from kvplan.measuring.events import Events
from kvplan.measuring.failures import (
    FIRST_TOKEN_TIMEOUT,
    MALFORMED,
    NO_TOKENS,
    RESET,
    STALLED,
    TOO_LARGE,
    TOO_LONG,
    TRUNCATED,
    Failed,
    of_status,
)
from kvplan.measuring.reply import Reply

MOST_BODY: Final = 64 << 20
MOST_ERROR: Final = 64 << 10  # of an answer that is an error
STALE_S: Final = 1.0  # a dead connection is known in a round trip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that a request may take; ``ask_s`` is for one whose answer is no stream."""

    connect_s: float = 10.0
    ask_s: float = 15.0
    first_token_s: float = 300.0
    between_s: float = 60.0
    total_s: float = 600.0


class Connection(asyncio.Protocol):
    """A connection that answers one request after the other."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._http = h11.Connection(our_role=h11.CLIENT)
        self._transport: asyncio.Transport | None = None
        self._finished: asyncio.Future[None] | None = None
        self._reply = Reply()
        self._streams = True
        self.is_answered = False  # whether anything came of the last request
        self.num_exchanges = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @property
    def is_idle(self) -> bool:
        """Whether another request may be sent on it."""
        transport = self._transport
        ready = self._http.our_state is h11.IDLE and self._http.their_state is h11.IDLE
        return transport is not None and not transport.is_closing() and ready

    async def exchange(self, request: h11.Request, body: bytes, *, streams: bool = True) -> Reply:
        """Send a request and wait for all of its answer; how it failed is in the reply.

        With ``streams`` the answer has to be server-sent events; else ``body`` has it.
        """
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._finished = loop.create_future()
        self._reply, self._streams = Reply(), streams
        self.is_answered, self.num_exchanges = False, self.num_exchanges + 1
        self._events, self.body, self._status, self._size = Events(), b"", 0, 0
        wire = self._http
        data = b"".join(
            part or b""
            for part in (
                wire.send(request),
                wire.send(h11.Data(body)),
                wire.send(h11.EndOfMessage()),
            )
        )
        self._reply.sent_s = time.perf_counter()
        self._transport.write(data)
        watch = loop.call_later(self._patience(), self._watch)
        self._timer = watch
        try:
            await self._finished
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._timer.cancel()
            self._finished = None
        return self._reply

    @property
    def was_stale(self) -> bool:
        """Whether it broke as one does that the server had closed while it waited."""
        took = self._reply.ended_s - self._reply.sent_s
        return self.num_exchanges > 1 and not self.is_answered and took < STALE_S

    @property
    def status(self) -> int:
        """The status of the last answer."""
        return self._status

    def data_received(self, data: bytes) -> None:
        """Bytes, with the time of their arrival."""
        now = time.perf_counter()
        if self._finished is None:
            self.close()  # nobody asked
            return
        self.is_answered = True
        try:
            self._http.receive_data(data)
            self._read(now)
        except Failed as failed:
            self._fail(failed, now)
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            self._fail(self._broken(str(error)), now)

    def eof_received(self) -> bool:
        """The server sends no more: an answer without a length ends here."""
        now = time.perf_counter()
        if self._finished is not None and self.is_answered:
            try:
                self._http.receive_data(b"")
                self._read(now)
            except Failed as failed:
                self._fail(failed, now)
            except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
                self._fail(self._broken(str(error)), now)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self._fail(Failed(RESET, str(error or "closed by the server")), time.perf_counter())

    def close(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()

    def _broken(self, said: str) -> Failed:
        """HTTP that breaks off is truncated, other HTTP that cannot be read is malformed."""
        return Failed(TRUNCATED if "without sending complete" in said or "peer closed" in said
                      else MALFORMED, said)  # fmt: skip

    def _read(self, now: float) -> None:
        """Everything that has come in whole."""
        while self._finished is not None:
            event = self._http.next_event()
            if isinstance(event, h11.Response):
                self._status = event.status_code
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data), now)
            elif isinstance(event, h11.EndOfMessage):
                self._end(now)
            elif event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return

    def _take(self, data: bytes, now: float) -> None:
        self._size += len(data)
        ok = 200 <= self._status < 300
        if self._size > (MOST_BODY if ok else MOST_ERROR):
            raise (Failed(TOO_LARGE, f"{self._size:,} B") if ok else
                   of_status(self._status, self.body))  # fmt: skip
        if not (ok and self._streams):
            self.body += data
            return
        for payload in self._events.feed(data):
            self._reply.take(payload, now)

    def _end(self, now: float) -> None:
        """The whole answer is there, if it is one."""
        if not 200 <= self._status < 300:
            raise of_status(self._status, self.body)
        if self._streams and not self._reply.has_ended:
            kind = TRUNCATED if self._reply.arrived or self._events.seen else MALFORMED
            raise Failed(kind, "the stream ended without saying so")
        if self._streams and not self._reply.arrived:
            raise Failed(NO_TOKENS)
        self._finish(now)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()

    def _finish(self, now: float) -> None:
        self._reply.ended_s = now
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)
        self._finished = None

    def _fail(self, failed: Failed, now: float) -> None:
        if self._finished is None:
            return
        self._reply.failure, self._reply.detail = failed.kind, failed.detail
        self._finish(now)
        self.close()

    def _patience(self) -> float:
        """Seconds until something has to have come."""
        if not self._streams:
            return self.limits.ask_s
        first = not self._reply.arrived
        return self.limits.first_token_s if first else self.limits.between_s

    def _watch(self) -> None:
        """Give up on an answer that is quiet or endless, else look again when it may be."""
        if self._finished is None:
            return
        now, reply = time.perf_counter(), self._reply
        quiet = self._last_token_s() + self._patience() - now
        left = reply.sent_s + self.limits.total_s - now
        if left <= 0:
            self._fail(Failed(TOO_LONG, f"more than {self.limits.total_s:g} s"), now)
        elif quiet <= 0:
            kind = STALLED if reply.arrived else FIRST_TOKEN_TIMEOUT
            self._fail(Failed(kind, f"nothing for {self._patience():g} s"), now)
        else:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(quiet, left) + 0.001, self._watch)

    def _last_token_s(self) -> float:
        """When something useful came last: a comment that keeps a line alive is nothing useful."""
        if self._reply.arrived:
            return self._reply.arrived[-1].at_s
        return self._reply.sent_s
