"""Traces that are wrong, huge or hostile end in a sentence or are counted, never in a traceback."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.core.errors import BadFile, BadQuestion, KvplanError, SourceUnreachable
from kvplan.simulation.traces import lines as lines_module
from kvplan.simulation.traces import read_traffic
from kvplan.simulation.traffic import Traffic
from tests.simulation.traces.files import CONVERSATION

GOOD: dict[str, Any] = {
    "timestamp": 5, "input_length": 600, "output_length": 9, "hash_ids": [1, 2],
}  # fmt: skip


# Intervals so short that no number of them fills a window.
STUCK = json.dumps({"w": {"fleet_rate_rps": [5.0], "window_s": 600, "top": [{
    "client": 1, "rows": [[0, 1.0, 1.0, "Gamma", 1e-12, 1.0]],
    "length_percentiles_0_100": {"0": {"input_tokens": [5, 9], "output_tokens": [5, 9]}}}]}}
).encode()  # fmt: skip


def lines(*rows: Any) -> bytes:
    return b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"timestamp": -1}, "arrival at -0.001 s"),
        ({"timestamp": float("nan")}, "arrival at nan s"),
        ({"timestamp": float("inf")}, "arrival at inf s"),
        ({"timestamp": 1e300}, "arrival at"),
        ({"timestamp": "noon"}, "arrival 'noon' is no number"),
        ({"timestamp": None}, "arrival missing is no number"),
        ({"timestamp": [1]}, "arrival [1] is no number"),
        ({"input_length": 0}, "prompt of 0 tokens"),
        ({"input_length": -5}, "prompt of -5 tokens"),
        ({"input_length": 10**12}, "prompt of 1,000,000,000,000 tokens"),
        ({"input_length": 10**40}, "prompt of absurdly many tokens"),
        ({"input_length": 600.5}, "prompt 600.5 is no whole number"),
        ({"input_length": True}, "prompt True is no whole number"),
        ({"input_length": None}, "prompt missing is no whole number"),
        ({"input_length": float("nan")}, "prompt nan is no whole number"),
        ({"output_length": 0}, "output of 0 tokens"),
        ({"output_length": "many"}, "output 'many' is no whole number"),
        ({"hash_ids": [1, 2, 3]}, "3 ids of 512 tokens for a prompt of 600"),
        ({"hash_ids": [1.5, 2]}, "an id that is neither a number nor a text"),
        ({"hash_ids": [None]}, "an id that is neither a number nor a text"),
        ({"hash_ids": "12"}, "hash_ids is no list"),
        ({"hash_ids": {"a": 1}}, "hash_ids is no list"),
        ({"block_size": 16}, "blocks of 16 tokens after blocks of 512"),
        ({"priority": 10**15}, "a priority of"),
    ],
)
def test_a_bad_row_is_counted_with_its_line(change: dict[str, Any], why: str) -> None:
    """And those around it are taken."""
    traffic = read_traffic(lines(GOOD, GOOD | change, GOOD))

    assert (2, 1) == (len(traffic), traffic.num_skipped)
    (told,) = traffic.skipped
    assert told.startswith(f"line 2: {why}")
    assert [1, 2, 1, 2] == traffic.hash_ids.tolist()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (b"{broken", "is not JSON"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"input_length": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b"3", "is no object"),
        (b"null", "is no object"),
        (b'{"other": 1}', "prompt missing"),
    ],
)
def test_a_line_that_is_no_row(row: bytes, why: str) -> None:
    """Counted with its line."""
    traffic = read_traffic(lines(GOOD, row, GOOD))

    assert (2, 1) == (len(traffic), traffic.num_skipped)
    assert traffic.skipped[0].startswith(f"line 2: {why}")


@pytest.mark.parametrize(
    "turns", [[("user", "x" * (17 << 20))], [("user", "x" * 200), ("assistant", "y")] * 6000]
)
def test_a_chat_that_is_too_long(turns: list[tuple[str, str]]) -> None:
    """Is counted: as long as it is, or as long as all its prompts are together."""
    chat = {"messages": [{"role": role, "content": text} for role, text in turns]}
    short = {"messages": [{"role": "user", "content": "hello"}]}
    traffic = read_traffic([chat, short])

    assert (1, 1) == (len(traffic), traffic.num_skipped)
    assert "a chat of" in traffic.skipped[0]


def test_many_bad_rows_are_all_counted() -> None:
    """The first ones are told one by one."""
    traffic = read_traffic(lines(GOOD, *[b"{"] * 5000, GOOD))

    assert (5000, 20) == (traffic.num_skipped, len(traffic.skipped))


def test_out_of_order() -> None:
    """Sorted by arrival, ids and all, and said."""
    made = [GOOD | {"timestamp": t, "hash_ids": [t]} for t in (3000, 1000, 2000, 1000)]
    traffic = read_traffic(lines(*made))

    assert [0.0, 0.0, 1.0, 2.0] == traffic.arrival_s.tolist()
    assert [1000, 1000, 2000, 3000] == traffic.hash_ids.tolist()
    assert ("2 arrivals were before the one above them: requests are sorted by arrival.",) == (
        traffic.notes
    )


def test_ids_that_are_texts() -> None:
    """Hashes of any spelling are equal where they are the same, and never equal to a number."""
    made = [GOOD | {"hash_ids": ids} for ids in (["a", "b"], ["a", 2], [1, 2], [10**30, 2])]
    ids = read_traffic(lines(*made)).hash_ids.tolist()

    assert ids[0] == ids[2]
    assert ids[3] == ids[5] == ids[7] == 2
    assert 5 == len(set(ids))


def test_a_million_duplicates() -> None:
    """Are a million requests, in the time that they take to read."""
    row = b'{"timestamp":0,"input_length":10,"output_length":1}\n'
    traffic = read_traffic(gzip.compress(row * 1_000_000, 1))

    assert 1_000_000 == len(traffic)
    assert sum(getattr(traffic, name).nbytes for name in COLUMNS) <= 60 * 1_000_000


COLUMNS = (
    "arrival_s", "prompt_tokens", "output_tokens", "after", "think_s", "priority", "hash_starts",
)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"", "is empty"),
        (b"\n \n\t\n", "is empty"),
        (b"\0" * 10_000, "is binary"),
        (bytes(range(256)) * 40, "is binary"),
        (b"PK\x03\x04" + b"x" * 100, "zip archive"),
        (b"PAR1" + b"x" * 100, "Parquet"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
        (gzip.compress(b"{}", mtime=0)[:-9], "cut short"),
        (b"\x1f\x8b" + b"junk" * 9, "is damaged"),
        (b"hello\nworld\n", "No column"),
        (b"a,b,c\n1,2,3\n", "No column"),
        (b"{}\n{}\n", "There is no request"),
        (b"[]", "There is no request"),
        (b"[1, 2, 3]", "There is no request"),
        (b'{"w": {"fleet_rate_rps": 3}}', "is not complete"),
        (STUCK, "fill no window"),
        (b'{"w": {"fleet_rate_rps": [1e300], "window_s": 1, "top": []}}', "is not complete"),
    ],
)
def test_what_is_no_trace(made: bytes, said: str) -> None:
    """A sentence that says what it is."""
    with pytest.raises(BadFile) as raised:
        read_traffic(made)

    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["", "no/such/file", ".", "a\0b"])
def test_what_cannot_be_read(name: str) -> None:
    """A sentence, and an exit status."""
    with pytest.raises((BadQuestion, SourceUnreachable)):
        read_traffic(name)


def test_a_gzip_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends when it has grown out of proportion; here with bounds that a test can reach."""
    monkeypatch.setattr(lines_module, "GROWTH_FROM", 8 << 20)
    row = b'{"timestamp":0,"input_length":10,"output_length":1}' + b" " * 100_000 + b"\n"
    with pytest.raises(BadFile, match="when it is unzipped: no trace does"):
        read_traffic(gzip.compress(row * 200))


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence with its number; here with a bound that a test can reach."""
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 4 << 20)
    with pytest.raises(BadFile, match="Line 2 of the trace has no end within 4 MiB"):
        read_traffic(lines(GOOD, b"x" * (6 << 20)))


def test_an_endless_pipe(tmp_path: Path) -> None:
    """The first so many are taken, and the pipe is left."""
    pipe = tmp_path / "endless.jsonl"
    os.mkfifo(pipe)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as stream:
            while True:
                stream.write(lines(GOOD) + b"\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    traffic = read_traffic(pipe, requests=500)
    writer.join(10)

    assert (500, False) == (len(traffic), writer.is_alive())


def test_an_endless_row_of_bad_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends after so many without a request."""
    from kvplan.simulation.traces import columns

    monkeypatch.setattr(columns, "MOST_BARREN", 10_000)

    def endless() -> Any:
        while True:
            yield GOOD | {"input_length": -1}

    with pytest.raises(BadFile, match="10,000 rows in a row of the rows are no requests"):
        read_traffic(endless())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings(encoding: str) -> None:
    """Marked encodings are read."""
    text = json.dumps(GOOD) + "\n" + json.dumps(GOOD) + "\n"

    assert 2 == len(read_traffic(text.encode(encoding)))


def test_a_list_over_many_lines() -> None:
    """Items that are pretty-printed, one of them broken at its end."""
    text = json.dumps([GOOD, GOOD | {"input_length": -1}, GOOD], indent=2)
    whole, cut = read_traffic(text.encode()), read_traffic(text.encode()[:-30])

    assert (2, 1) == (len(whole), whole.num_skipped)
    assert (1, 2) == (len(cut), cut.num_skipped)


def check(traffic: Traffic) -> None:
    """What holds of all traffic."""
    count = len(traffic)
    assert count > 0
    assert (np.diff(traffic.arrival_s) >= 0).all()
    assert traffic.arrival_s[0] == 0
    assert (traffic.prompt_tokens >= 1).all()
    assert (traffic.output_tokens >= 1).all()
    assert (traffic.after < np.arange(count)).all()
    assert (traffic.think_s >= 0).all()
    assert count + 1 == len(traffic.hash_starts)
    assert len(traffic.hash_ids) == traffic.hash_starts[-1]
    blocks = np.diff(traffic.hash_starts)
    assert (blocks * traffic.hash_block < traffic.prompt_tokens + traffic.hash_block).all()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2000) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
KEYS = st.sampled_from([
    "timestamp", "input_length", "output_length", "hash_ids", "block_size", "chat_id",
    "parent_chat_id", "r", "block", "messages", "conversations", "body", "prompt_tokens",
    "output_tokens", "sub", "t", "role", "content", "from", "value", "fleet_rate_rps", "top",
])  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=6))
def test_any_objects(rows: list[dict[str, Any]]) -> None:
    """End in traffic that holds together, or in a sentence."""
    with contextlib.suppress(KvplanError):
        check(read_traffic(rows))


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 3000))
def test_any_bytes_in_a_real_trace(junk: bytes, at: int) -> None:
    """Junk in the middle of a trace costs at most the rows that it touches."""
    with contextlib.suppress(KvplanError):
        check(read_traffic(HEAD[:at] + junk + HEAD[at:]))


with gzip.open(CONVERSATION) as stream:
    HEAD = stream.read(3000)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from([",", ";", "\t"]))
def test_any_table(text: str, delimiter: str) -> None:
    """Whatever stands under a header."""
    head = delimiter.join(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
    with contextlib.suppress(KvplanError):
        check(read_traffic(f"{head}\n{text}\n5{delimiter}6{delimiter}7\n".encode()))
