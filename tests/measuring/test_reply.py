"""Chunks to tokens: by the server's running count, by the final usage, else one each."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.measuring.failures import Failed
from kvplan.measuring.reply import DONE, Reply


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": words, "finish_reason": None}], **more}


def chat(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": None}]}


def usage(tokens: int, **more: Any) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens, **more}}


# What a server streams, the tokens of its chunks, and all tokens.
STREAMS: dict[str, tuple[list[dict[str, Any]], list[int], int]] = {
    "a token a chunk": ([text("a"), text("b"), usage(2)], [1, 1], 2),
    "no usage at all": ([text("a"), text("b")], [1, 1], 2),
    "bundles, by their characters": ([text("abcd"), text("ab"), usage(6)], [4, 2], 6),
    "bundles of equal length": ([text("ab"), text("cd"), usage(8)], [4, 4], 8),
    "a running usage (vLLM)": (
        [text("ab", usage={"completion_tokens": 3}), text("c", usage={"completion_tokens": 4})],
        [3, 1], 4,
    ),
    "a running count (llama.cpp)": (
        [text("a", timings={"predicted_n": 1}), text("b", timings={"predicted_n": 4}), usage(4)],
        [1, 3], 4,
    ),
    "a token without text yet": (
        [text("", timings={"predicted_n": 1}), text("é", timings={"predicted_n": 2}), usage(2)],
        [1, 1], 2,
    ),
    "a role is no token": ([chat(role="assistant", content=""), chat(content="a")], [1], 1),
    "thoughts are tokens": ([chat(reasoning_content="hm"), chat(content="a")], [1, 1], 2),
    "a call is a token": ([chat(tool_calls=[{"function": {"name": "f"}}])], [1], 1),
    "no text at all": ([chat(content=None), usage(0)], [], 0),
}  # fmt: skip


def read(events: list[dict[str, Any]]) -> Reply:
    reply = Reply()
    for at, event in enumerate(events):
        reply.take(json.dumps(event).encode(), float(at))
    reply.take(DONE, float(len(events)))
    return reply


@pytest.mark.parametrize("name", STREAMS)
def test_tokens_of_chunks(name: str) -> None:
    """Each chunk has the tokens that the server put into it."""
    events, counts, total = STREAMS[name]
    reply = read(events)

    assert counts == [chunk.tokens for chunk in reply.timed()]
    assert total == reply.tokens


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=20), st.integers(0, 99))
def test_spread_tokens_add_up(pieces: list[str], more: int) -> None:
    """Whatever the chunks are, their tokens are those of the usage, and none is empty."""
    reply = read([*map(text, pieces), usage(len(pieces) + more)])
    counts = [chunk.tokens for chunk in reply.timed()]

    assert len(pieces) + more == sum(counts)
    assert min(counts) >= 1


def test_reuse_is_what_usage_says() -> None:
    """Cached tokens of usage details; llama.cpp's timings where there are none."""
    of_usage = read([text("a"), usage(1, prompt_tokens_details={"cached_tokens": 7})])
    of_timings = read([text("a", timings={"predicted_n": 1, "cache_n": 5})])
    of_none = read([text("a"), usage(1, prompt_tokens_details=None)])

    assert (7, 5, None) == tuple(r.cached_tokens for r in (of_usage, of_timings, of_none))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "usage", "timings", "text", "delta", "content", "error"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(event: Any) -> None:
    """A stranger's events do nothing but count or be refused."""
    with suppress(Failed):
        reply = Reply()
        reply.take(json.dumps(event).encode(), 0.0)
        assert reply.tokens >= len(reply.timed()) - len(reply.arrived)
