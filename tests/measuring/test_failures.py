"""A server that does everything wrong: nothing hangs, nothing is lost, each failure has a kind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from kvplan.measuring.client import Address, Client
from kvplan.measuring.connection import Limits
from kvplan.measuring.reply import Reply
from tests.measuring.faulty_server import (
    DONE,
    END,
    HEAD,
    Answering,
    Script,
    chunk,
    event,
    faulty,
    last,
    text,
)

# A loaded machine is slow: only where a limit is what is tested is it short.
PATIENT = Limits(connect_s=5, first_token_s=5, between_s=5, total_s=20)
LIMITS = Limits(connect_s=5, first_token_s=0.5, between_s=0.5, total_s=1.2)
TIMED = ("first_token_timeout", "stalled", "too_long")
FOREVER_S = 30.0


async def quiet(one: Answering) -> None:
    await asyncio.sleep(FOREVER_S)


async def quiet_after_head(one: Answering) -> None:
    await one.say(HEAD, pause_s=FOREVER_S)


async def pings_alone(one: Answering) -> None:
    await one.stream(*[b": ping\n\n"] * 200, pause_s=0.02)


async def stalls(one: Answering) -> None:
    await one.stream(text("a"), text("b"))
    await asyncio.sleep(FOREVER_S)


async def pings_after_a_token(one: Answering) -> None:
    await one.stream(text("a"), *[b": ping\n\n"] * 200, pause_s=0.02)


async def never_ends(one: Answering) -> None:
    await one.stream(*[text("a")] * 10_000, pause_s=0.01)


async def resets(one: Answering) -> None:
    await one.stream(text("a"), text("b"), pause_s=0.02)
    one.reset()


async def resets_at_once(one: Answering) -> None:
    one.reset()


async def breaks_off(one: Answering) -> None:
    await one.stream(text("a"), text("b"))
    one.writer.close()


async def ends_in_a_chunk(one: Answering) -> None:
    await one.say(HEAD + chunk(text("a")) + b"ff\r\nda")
    one.writer.close()


async def ends_without_saying_so(one: Answering) -> None:
    await one.stream(text("a"), text("b"))
    await one.say(END)


async def no_json(one: Answering) -> None:
    await one.stream(text("a"), b"data: {oops}\n\n")


async def no_object(one: Answering) -> None:
    await one.stream(text("a"), b"data: [1, 2]\n\n")


async def no_choice(one: Answering) -> None:
    await one.stream(event(choices=["a"]))


async def deep_json(one: Answering) -> None:
    await one.stream(b"data: " + b"[" * 100_000 + b"\n\n")


async def a_page(one: Answering) -> None:
    await one.whole("200 OK", b"<html>\n<p>Sign in</p>\n</html>", "text/html")


async def nothing(one: Answering) -> None:
    await one.whole("200 OK", b"", "text/event-stream")


async def no_http(one: Answering) -> None:
    await one.say(b"220 ready\r\n\r\n")
    await asyncio.sleep(0.05)


async def a_huge_line(one: Answering) -> None:
    await one.say(HEAD)
    for _ in range(40):
        await one.say(chunk(b"x" * 65536 if _ else b"data: "))


async def a_huge_head(one: Answering) -> None:
    await one.say(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 20_000)


async def an_error_event(one: Answering) -> None:
    await one.stream(text("a"), event(error={"message": "out of memory", "code": 500}))


async def no_tokens(one: Answering) -> None:
    await one.stream(last(0), DONE)
    await one.say(END)


def status(said: str) -> Script:
    async def script(one: Answering) -> None:
        await one.whole(said, b'{"error": {"message": "not now"}}')

    return script


async def an_endless_error(one: Answering) -> None:
    await one.say(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(200):
        await one.say(chunk(b"x" * 4096))


CASES: dict[str, tuple[Script, str, int]] = {
    "never answers": (quiet, "first_token_timeout", 0),
    "a head and no body": (quiet_after_head, "first_token_timeout", 0),
    "comments keep the line alive": (pings_alone, "first_token_timeout", 0),
    "stalls between tokens": (stalls, "stalled", 2),
    "comments after a token": (pings_after_a_token, "stalled", 1),
    "tokens without end": (never_ends, "too_long", 3),
    "resets in the stream": (resets, "reset", 2),
    "resets before an answer": (resets_at_once, "reset", 0),
    "closes in the stream": (breaks_off, "truncated", 2),
    "closes in a chunk": (ends_in_a_chunk, "truncated", 1),
    "ends without saying so": (ends_without_saying_so, "truncated", 2),
    "no JSON": (no_json, "malformed", 1),
    "no object": (no_object, "malformed", 1),
    "no choice": (no_choice, "malformed", 0),
    "deep JSON": (deep_json, "malformed", 0),
    "a page of HTML": (a_page, "malformed", 0),
    "an empty answer": (nothing, "malformed", 0),
    "no HTTP": (no_http, "malformed", 0),
    "a line without end": (a_huge_line, "too_large", 0),
    "a head without end": (a_huge_head, "malformed", 0),
    "an error in the stream": (an_error_event, "error_event", 1),
    "no tokens": (no_tokens, "no_tokens", 0),
    "401": (status("401 Unauthorized"), "http_401", 0),
    "404": (status("404 Not Found"), "http_404", 0),
    "429": (status("429 Too Many Requests"), "http_429", 0),
    "500": (status("500 Internal Server Error"), "http_500", 0),
    "503": (status("503 Service Unavailable"), "http_503", 0),
    "a redirect": (status("302 Found"), "http_302", 0),
    "an error without end": (an_endless_error, "http_500", 0),
}


def ask(script: Script, kind: str = "", times: int = 1) -> list[Reply]:
    """So many requests one after the other through one client."""
    limits = LIMITS if kind in TIMED else PATIENT

    async def asking(address: str) -> list[Reply]:
        client = Client(Address(address), limits)
        try:
            return [await client.stream("/v1/completions", {"prompt": "a"}) for _ in range(times)]
        finally:
            await client.close()

    with faulty(script) as server:
        return asyncio.run(asking(server.address))


@pytest.mark.parametrize("name", CASES)
def test_every_failure_has_its_kind(name: str) -> None:
    """It ends in time, says how, and keeps the tokens that came."""
    script, kind, tokens = CASES[name]
    start = time.perf_counter()
    reply = ask(script, kind)[0]

    assert kind == reply.failure
    assert time.perf_counter() - start < 4.5
    assert len(reply.arrived) >= tokens if kind == "too_long" else len(reply.arrived) == tokens
    assert reply.ended_s >= reply.sent_s


def test_nobody_listens() -> None:
    """A port without a server is refused at once."""

    async def asking() -> Reply:
        return await Client(Address("http://127.0.0.1:9"), LIMITS).stream("/v1/completions", {})

    assert "refused" == asyncio.run(asking()).failure


def test_a_failure_is_told_in_the_servers_words() -> None:
    """The beginning of an error's body is kept, and no more than that."""
    reply = ask(status("503 Service Unavailable"))[0]

    assert '{"error": {"message": "not now"}}' == reply.detail


def alternating(good: Callable[[Answering], Awaitable[None]], bad: Script) -> Script:
    async def script(one: Answering) -> None:
        await (bad if one.number % 2 else good)(one)

    return script


async def two_tokens(one: Answering) -> None:
    await one.stream(text("a"), text("b"), last(2), DONE)
    await one.say(END)


@pytest.mark.parametrize("name", [name for name in CASES if name != "resets before an answer"])
def test_the_next_request_is_answered(name: str) -> None:
    """After any failure the client goes on with a connection that works."""
    script, kind, _ = CASES[name]
    replies = ask(alternating(two_tokens, script), kind, times=3)

    assert [None, kind, None] == [reply.failure for reply in replies]
    assert [2, 2] == [reply.tokens for reply in replies[::2]]


def test_a_reset_before_any_byte_is_sent_again_once_and_told() -> None:
    """A connection that had waited may be dead: a second reset is a failure."""

    async def script(one: Answering) -> None:
        await (two_tokens if one.number in (0, 2) else resets_at_once)(one)

    assert [(None, False), (None, True), ("reset", True)] == [
        (reply.failure, reply.is_resent) for reply in ask(script, times=3)
    ]


def test_a_connection_that_was_closed_while_it_waited_is_no_failure() -> None:
    """A server may hang up between two requests: the second goes out on a new connection."""

    async def once(one: Answering) -> None:
        await two_tokens(one)
        await asyncio.sleep(0.05)
        one.writer.close()

    async def asking(address: str) -> list[str | None]:
        client = Client(Address(address), LIMITS)
        found = []
        for _ in range(3):
            found.append((await client.stream("/v1/completions", {})).failure)
            await asyncio.sleep(0.1)
        await client.close()
        return found

    with faulty(once) as server:
        assert [None, None, None] == asyncio.run(asking(server.address))
