"""What requests share, how much of it is reused, where they part and what that costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.core.errors import BadFile, BadQuestion, BadValue, UnknownName
from kvplan.simulation.prefix.hosted import caching_of
from kvplan.simulation.servers.base import Request
from kvplan.simulation.servers.llamacpp import LlamaServer, LlamaSettings

RANDOM = np.random.default_rng(7)
HANDBOOK = RANDOM.integers(1000, 100_000, 12_000).tolist()
ASKERS = [[100 + i, *RANDOM.integers(0, 999, 49).tolist()] for i in range(20)]
STAMPS = [[i + 1, 500 + i] for i in range(20)]


def handbook(stamped: bool) -> list[list[int]]:
    """Twenty askers of 50 tokens behind one handbook, each behind a time of its own or not."""
    return [
        [*(stamp if stamped else []), *HANDBOOK, *asked]
        for stamp, asked in zip(STAMPS, ASKERS, strict=True)
    ]


def test_a_handbook_is_computed_once() -> None:
    """240,000 positions of the handbook become 12,000."""
    answer = kvplan.prefix(handbook(stamped=False))

    assert 20 * 12_050 == answer.prompt_tokens
    assert 12_000 == answer.computed_tokens - 20 * 50
    assert 19 * 12_000 == answer.reused_tokens


def test_a_time_in_front_of_it() -> None:
    """Nothing is reused; the parting is told, and what it costs; the other order has all of it."""
    answer = kvplan.prefix(handbook(stamped=True))
    (first, *_) = answer.partings.breaks
    moved = answer.reordered

    assert 0 == answer.reused_tokens
    assert (0, 20, 19 * 12_000) == (first.position, first.requests, first.lost_tokens)
    assert moved is not None
    assert 19 * 12_000 == moved.saved_tokens
    assert "1 500" == " ".join(first.text_a.split()[:2])


def chat(system: str, asked: str) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": asked},
        ]
    }


WORDS = "a cache keeps what a model has computed so that nothing is computed twice "
LONG = "".join(f"{i}: {WORDS}" for i in range(200))


@pytest.mark.parametrize(
    ("made", "message", "before", "texts"),
    [
        ([chat(f"Today is {day}. {LONG}", "Why?") for day in ("Monday", "Friday")],
         0, "<|im_start|>system\nToday is ", ("Monday. 0: a", "Friday. 0: a")),
        ([chat("Be kind.", f"Request {i}. {LONG}") for i in "AB"],
         1, "Request ", ("A. 0", "B. 0")),
    ],
)  # fmt: skip
def test_where_messages_part(
    made: list[Any], message: int, before: str, texts: tuple[str, str]
) -> None:
    """The message, and what stands before and behind."""
    (found,) = kvplan.prefix(made).partings.breaks

    assert message == found.message_index
    assert found.text_before.endswith(before)
    assert found.text_a.startswith(texts[0])
    assert found.text_b.startswith(texts[1])
    assert found.lost_tokens is not None
    assert len(LONG) / 4 == pytest.approx(found.lost_tokens, abs=30)


def test_questions_that_differ_cost_nothing() -> None:
    """Prompts that part for good lose nothing, and no order would share more."""
    asked = ["How much is a ticket to the moon?", "Who wrote this and when was that?"]
    answer = kvplan.prefix([chat(LONG, text) for text in asked])

    assert [0] == [one.lost_tokens for one in answer.partings.breaks]
    assert answer.reordered is None


def test_families_are_told_apart() -> None:
    """Two handbooks behind the same kind of stamp: each is aligned with its own."""
    other = "".join(f"{i}. another text of another kind with words of its own " for i in range(200))
    made = [f"[{i:03}] {text}" for i in range(6) for text in (LONG, other)]
    answer = kvplan.prefix(made)
    expected = 5 * (len(LONG) + len(other)) / 4
    (first, *_) = answer.partings.breaks

    assert expected == pytest.approx(first.lost_tokens, rel=0.02)
    assert answer.reordered is not None
    assert expected == pytest.approx(answer.reordered.saved_tokens, rel=0.02)


@pytest.mark.parametrize(
    ("engine", "options", "expected"),
    [
        ("vllm", {}, [0, 48, 48, 0]),
        ("vllm", {"block_size": 32}, [0, 32, 32, 0]),
        ("vllm", {"block_size": 784}, [0, 0, 0, 0]),
        ("sglang", {}, [0, 63, 50, 5]),
        ("sglang", {"block_size": 64}, [0, 0, 0, 0]),
        ("llama.cpp", {}, [0, 63, 50, 0]),
        ("llama.cpp", {"slots": 1}, [0, 63, 50, 5]),
        ("none", {}, [0, 64, 50, 5]),
        ("none", {"block_size": 16}, [0, 64, 48, 0]),
    ],
)
def test_rules(engine: str, options: dict[str, Any], expected: list[int]) -> None:
    """The same prompt twice, one that shares 50 of its 80 tokens, one that shares 5 of 80."""
    first = list(range(64))
    made = [
        first,
        first,
        [*first[:50], *range(900, 930)],
        [*first[:5], *range(800, 875)],
    ]

    assert expected == list(kvplan.prefix(made, engine=engine, **options).reused)


PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=40), min_size=1, max_size=12)


@settings(deadline=None)
@given(PROMPTS, st.sampled_from([1, 4, 16]))
def test_reuse_is_the_longest_beginning_seen(prompts: list[list[int]], block: int) -> None:
    """The tree finds what comparing every prompt with all before it finds."""
    answer = kvplan.prefix(prompts, engine="none", block_size=block)
    found = [
        max((common(row, other) for other in prompts[:i]), default=0)
        for i, row in enumerate(prompts)
    ]
    expected = [
        seen if seen == len(row) else seen // block * block
        for seen, row in zip(found, prompts, strict=True)
    ]

    assert expected == list(answer.reused)


def common(a: Sequence[int], b: Sequence[int]) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
        min(len(a), len(b)),
    )


@settings(deadline=None)
@given(PROMPTS)
def test_the_tree_adds_up(prompts: list[list[int]]) -> None:
    """What sharing each run once saves is what is reused token by token."""
    answer = kvplan.prefix(prompts, engine="none", block_size=1)

    assert answer.reused_tokens == sum(row.saved_tokens for row in answer.shared.rows)


@settings(deadline=None)
@given(PROMPTS, st.integers(1, 4))
def test_slots_are_those_of_the_simulated_server(prompts: list[list[int]], slots: int) -> None:
    """llama.cpp's rule and the server that decides step by step reuse the same."""
    answer = kvplan.prefix(prompts, engine="llama.cpp", slots=slots)
    server = LlamaServer(settings=LlamaSettings(cells=10_000, slots=slots))
    found = []
    for index, row in enumerate(prompts):
        names: list[Any] = [tuple(row[: end + 1]) for end in range(len(row))]
        request = Request(index=index, prompt=len(row), output=1, ids=names)
        server.add(request)
        while not request.done:
            server.plan_step()
            server.end_step()
        found.append(request.hit)

    assert found == list(answer.reused)


@settings(deadline=None)
@given(st.lists(st.text("abc d", min_size=1, max_size=80), min_size=1, max_size=8))
def test_another_order_shares_no_less(texts: list[str]) -> None:
    """Any texts end in an answer whose figures hold together."""
    answer = kvplan.prefix(texts)

    assert 0 <= answer.hit_rate <= 1
    assert answer.reordered is None or answer.reordered.saved_tokens > 0
    assert all((one.lost_tokens or 0) <= answer.prompt_tokens for one in answer.partings.breaks)
    json.dumps(answer.to_dict())


def test_answers_are_kept() -> None:
    """The next turn of a chat reuses what was answered, where the answer is known."""
    made = {"conversations": [
        {"from": "human", "value": "a" * 400}, {"from": "gpt", "value": "b" * 400},
        {"from": "human", "value": "c" * 40}, {"from": "gpt", "value": "d"}]}  # fmt: skip
    answer = kvplan.prefix([made])

    assert 2 == len(answer.prompts)
    assert answer.reused[1] * 4 > 780


@pytest.mark.parametrize(
    ("name", "minimum", "seen", "counted"),
    [
        ("openai/gpt-4o", 1024, 1023, 0),
        ("openai/gpt-4o", 1024, 1024, 1024),
        ("openai/gpt-4o", 1024, 1279, 1152),
        ("anthropic/claude-haiku-4-5", 4096, 4095, 0),
        ("anthropic/claude-sonnet-4-5", 1024, 1500, 1500),
        ("google/gemini-2.5-flash", 1024, 1500, 1500),
        ("google/gemini-2.5-pro", 4096, 1500, 0),
        ("gpt-5-mini", 1024, 1500, 1408),
        ("claude-haiku-4-5", 4096, 1500, 0),
    ],
)
def test_what_an_api_counts(name: str, minimum: int, seen: int, counted: int) -> None:
    """From a minimum on, in steps."""
    caching = caching_of(name)

    assert (minimum, counted) == (caching.minimum_tokens, caching.counted(seen, 10_000))


def test_a_bill() -> None:
    """A handbook of 12,000 tokens is billed as cached 19 times, in steps of 128."""
    answer = kvplan.prefix(handbook(stamped=False), api="openai/gpt-4o")
    bill = answer.bill
    cached = 19 * (1024 + (12_000 - 1024) // 128 * 128)

    assert bill is not None
    assert cached == bill.cached_tokens
    assert bill.cost_without_caching == pytest.approx(241_000 * 2.5e-6, rel=1e-3)
    assert bill.cost == pytest.approx(((241_000 - cached) * 2.5 + cached * 1.25) * 1e-6, rel=1e-3)


def test_seconds() -> None:
    """On a card what is reused takes no time: a twentieth of the work, roughly."""
    answer = kvplan.prefix(handbook(stamped=True), model="llama-3.1-8b", gpu="h100", offline=True)
    said = answer.seconds

    assert said is not None
    assert said.reordered_s is not None
    assert said.with_reuse_s == said.without_reuse_s
    assert 0.03 < said.reordered_s / said.without_reuse_s < 0.15


@pytest.mark.parametrize(
    ("made", "options", "error", "said"),
    [
        ([[]], {}, BadFile, "There is no prompt"),
        (["a", [1]], {}, BadFile, "both texts and ids"),
        ([[1, -2]], {}, BadFile, "whole numbers"),
        (b"", {}, BadFile, "is empty"),
        (
            b"TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n",
            {},
            BadFile,
            "no ids of blocks",
        ),
        ("no/such/file", {}, kvplan.KvplanError, "cannot be read"),
        ([[1]], {"engine": "ollamma"}, UnknownName, "ollamma"),
        ([[1]], {"block_size": 0}, BadValue, "--block-size"),
        ([[1]], {"warm_up": 1.0}, BadValue, "--warm-up"),
        ([[1]], {"pool_blocks": "x"}, BadQuestion, "x"),
        ([[1]], {"pool": "1GiB"}, BadValue, "--model"),
        ([[1]], {"gpu": "h200"}, BadValue, "--gpu says how long prompts take of a model"),
        ([[1]], {"price": 3, "model": "llama-3.1-8b"}, BadValue, "--price is of a card"),
        ([[1]], {"engine": "llama.cpp", "pool_blocks": 9}, BadValue, "slots"),
        ([[1]], {"api": "nobody/nothing"}, UnknownName, "nobody"),
        (["a"], {"tokenizer": "missing.json"}, BadValue, "is no file"),
    ],
)
def test_wrong_questions(made: Any, options: Any, error: type[Exception], said: str) -> None:
    """A sentence that names what is wrong."""
    with pytest.raises(error) as raised:
        kvplan.prefix(made, **options)

    assert said in str(raised.value)


def test_rows_that_are_no_prompts_are_counted() -> None:
    """With their lines."""
    made = b'{"prompt": "hello"}\n{"prompt": 3}\n{oops\n{"prompt": "hello there"}\n'
    answer = kvplan.prefix(made)

    assert 2 == len(answer.prompts)
    assert 2 == answer.prompts.num_skipped
    assert ["line 2", "line 3"] == [text.partition(":")[0] for text in answer.prompts.skipped]


def test_a_tokenizer(tmp_path: Path) -> None:
    """Tokens are those of a tokenizer.json."""
    tokenizers = pytest.importorskip("tokenizers")
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "one": 1, "two": 2, "three": 3}, "[UNK]")
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    path = tmp_path / "tokenizer.json"
    inner.save(str(path))
    answer = kvplan.prefix(
        ["one two three", "one two two"],
        tokenizer=str(path),
        engine="none",
        block_size=1,
    )
    (found,) = answer.partings.breaks

    assert ([3, 3], [0, 2]) == (
        [row.tokens for row in answer.prompts.rows],
        list(answer.reused),
    )
    assert (2, "one two ", "three", "two") == (
        found.position,
        found.text_before,
        found.text_a,
        found.text_b,
    )


@pytest.mark.parametrize("name", ["texts.txt", "folder"])
def test_texts_of_files(name: str, tmp_path: Path) -> None:
    """A line a prompt, or a file a prompt."""
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        for i in range(3):
            (path / f"{i}.txt").write_text(WORDS * 20 + str(i))
    else:
        path.write_text("".join(f"{WORDS * 20}{i}\n" for i in range(3)))
    answer = kvplan.prefix(str(path))

    assert (3, 2 * (len(WORDS) * 5 // 16 * 16)) == (
        len(answer.prompts),
        answer.reused_tokens,
    )


def test_the_last_block_of_a_trace_is_as_long_as_the_prompt() -> None:
    """Two prompts of 700 tokens with equal ids of 512: 700 are computed once, not 1,024."""
    row = {"timestamp": 0, "input_length": 700, "output_length": 1, "hash_ids": [1, 2]}
    (shared,) = kvplan.prefix(f"{json.dumps(row)}\n".encode() * 2).to_dict()["tree"]

    assert [700, 700] == [shared["tokens"], shared["saved_tokens"]]


def test_an_endless_list_of_prompts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan.simulation.prefix.reading.MOST_PROMPTS", 100)

    with pytest.raises(BadFile, match="more than 100 prompts"):
        kvplan.prefix(iter(lambda: "the same again", ""))
