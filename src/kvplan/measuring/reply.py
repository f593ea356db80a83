"""What came of one request: its chunks with their times, what they carry, and how it ended.

A chunk may bundle several tokens. Their number is the server's own running count where it sends one
(`usage` in every chunk, llama.cpp's `timings.predicted_n`), else the total of the final usage
spread over the chunks by their characters; a chunk without either is a token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kvplan.measuring.failures import ERROR_EVENT, MALFORMED, TOO_LARGE, Failed

DONE: Final = b"[DONE]"
MOST_CHUNKS: Final = 1 << 20
TEXTS: Final = ("content", "reasoning_content", "reasoning")


class Arrived(NamedTuple):
    """A chunk that carries tokens: when, its characters, the tokens so far where they are told."""

    at_s: float
    chars: int
    so_far: int | None


class Timed(NamedTuple):
    """A chunk's time and how many tokens it has."""

    at_s: float
    tokens: int


@dataclass(slots=True)
class Reply:
    """A request's answer as it comes; times are of one monotonic clock."""

    sent_s: float = 0.0
    ended_s: float = 0.0
    arrived: list[Arrived] = field(default_factory=list)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    is_done: bool = False
    failure: str | None = None
    detail: str = ""
    is_resent: bool = False  # a connection that had waited was dead: sent again on a new one

    def take(self, payload: bytes, at_s: float) -> None:
        """One event.

        Raises:
            Failed: it is no JSON object, it says that the server failed, or there is no end.
        """
        if payload == DONE:
            self.is_done = True
            return
        try:
            event = json.loads(payload)
        except (ValueError, RecursionError):
            raise Failed(MALFORMED, f"no JSON: {payload[:80]!r}") from None
        if not isinstance(event, dict):
            raise Failed(MALFORMED, f"no JSON object: {payload[:80]!r}")
        if event.get("error"):
            raise Failed(ERROR_EVENT, str(event["error"])[:200])
        self._count(event)
        chars = self._text(event)
        so_far = _running(event)
        before = self.arrived[-1].so_far if self.arrived else 0
        # A chunk of no choice, or the last one, tells the total and is no token.
        may_be = event.get("choices") and not self.finish_reason and before is not None
        if chars or (may_be and so_far is not None and so_far > (before or 0)):
            if len(self.arrived) >= MOST_CHUNKS:
                raise Failed(TOO_LARGE, f"more than {MOST_CHUNKS:,} chunks")
            self.arrived.append(Arrived(at_s, chars, so_far))

    def _count(self, event: Mapping[str, Any]) -> None:
        """Tokens as the server counts them; a later word replaces an earlier one."""
        usage = _object(event, "usage")
        details = _object(usage, "prompt_tokens_details")
        timings = _object(event, "timings")
        self.prompt_tokens = _whole(usage.get("prompt_tokens"), self.prompt_tokens)
        self.completion_tokens = _whole(usage.get("completion_tokens"), self.completion_tokens)
        self.cached_tokens = _whole(timings.get("cache_n"), self.cached_tokens)
        self.cached_tokens = _whole(details.get("cached_tokens"), self.cached_tokens)

    def _text(self, event: Mapping[str, Any]) -> int:
        """Characters of the first choice; its reason to end is kept."""
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            raise Failed(MALFORMED, "a choice that is no object")
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason[:40]
        text = choice.get("text")
        if isinstance(text, str):
            return len(text)
        delta = _object(choice, "delta")
        chars = sum(len(delta[key]) for key in TEXTS if isinstance(delta.get(key), str))
        return chars or (1 if delta.get("tool_calls") else 0)

    @property
    def has_ended(self) -> bool:
        """Whether the server said that this is all."""
        return self.is_done or self.finish_reason is not None

    @property
    def tokens(self) -> int:
        """Generated tokens: as the server counts them, else its chunks."""
        if self.completion_tokens is not None:
            return self.completion_tokens
        last = self.arrived[-1].so_far if self.arrived else None
        return last if last is not None else len(self.arrived)

    def timed(self) -> list[Timed]:
        """The chunks with their tokens."""
        counts = list(self._counts())
        return [Timed(a.at_s, n) for a, n in zip(self.arrived, counts, strict=True) if n]

    def _counts(self) -> Iterator[int]:
        if self.arrived and all(chunk.so_far is not None for chunk in self.arrived):
            before = 0
            for chunk in self.arrived:
                assert chunk.so_far is not None
                yield max(0, chunk.so_far - before)
                before = max(before, chunk.so_far)
        elif self.failure is None and self.tokens > len(self.arrived):
            yield from _spread_over([chunk.chars for chunk in self.arrived], self.tokens)
        else:
            yield from (1 for _ in self.arrived)


def _spread_over(weights: list[int], total: int) -> list[int]:
    """``total`` in parts of at least 1 by weight: [5, 15] and 4 are [1, 3]."""
    whole, left = sum(weights) or len(weights), total - len(weights)
    found, seen, given = [], 0, 0
    for weight in weights:
        seen += weight if sum(weights) else 1
        upto = round(left * seen / whole)
        found.append(1 + upto - given)
        given = upto
    return found


def _running(event: Mapping[str, Any]) -> int | None:
    """Tokens so far, where every chunk says it."""
    timings, usage = _object(event, "timings"), _object(event, "usage")
    return _whole(timings.get("predicted_n"), _whole(usage.get("completion_tokens"), None))


def _object(event: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = event.get(key)
    return found if isinstance(found, dict) else {}


def _whole(value: object, otherwise: int | None) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40:
        return value
    return otherwise
