"""Any text is an answer or a sentence: no traceback, no time without bound, whatever is in it."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.core.errors import KvplanError
from kvplan.logs.numbers import decimal, size, whole
from kvplan.logs.prefixes import messages
from kvplan.logs.read import read_log
from kvplan.logs.readers.registry import new_readers
from kvplan.logs.readers.vllm.settings import settings as settings_of
from tests.logs.test_vllm_variants import ERRORS, LINES

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KNOWN = [line for line, _ in LINES] + [line for line, *_ in ERRORS]
MARKS = sorted({mark for reader in new_readers() for mark in (*reader.marks, *reader.signs)})
FIGURES = ["0", "-1", "1e9", "999999999999999999999", "1,2,3", "0.00", "NaN", "٣", "-0", "1" * 400]
MODEL = "non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192}"

fragment = st.one_of(
    st.sampled_from(KNOWN),
    st.sampled_from(MARKS),
    st.sampled_from(FIGURES),
    st.sampled_from(
        ["(EngineCore pid=1) ", "[1;36m", "\r", "\\n", '{"log":"', " GiB", "> ", "\x1b["]
    ),
    st.text(max_size=30),
)
line = st.lists(fragment, max_size=6).map("".join)


@st.composite
def altered(draw: st.DrawFn) -> str:
    """A known line with a figure replaced, or cut."""
    text = draw(st.sampled_from(KNOWN))
    digits = [place for place, c in enumerate(text) if c.isdigit()]
    if digits and draw(st.booleans()):
        place = draw(st.sampled_from(digits))
        text = text[:place] + draw(st.sampled_from(FIGURES)) + text[place + 1 :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@given(st.lists(st.one_of(line, altered()), max_size=20))
@SLOW
def test_any_lines(lines: list[str]) -> None:
    """Lines of anything are read; facts are figures or words, and JSON."""
    with suppress(KvplanError):
        log = read_log("\n".join([*lines, ""]).encode())
        for start in log.starts:
            json.dumps([fact.to_dict() for fact in start.facts], allow_nan=False)


@given(st.binary(max_size=2000))
@SLOW
def test_any_bytes(data: bytes) -> None:
    """Bytes of anything are read, or refused in a sentence."""
    with suppress(KvplanError):
        read_log(data)


@given(st.lists(altered(), min_size=1, max_size=8))
@settings(SLOW, max_examples=60)
def test_any_start_is_explained(lines: list[str]) -> None:
    """Altered lines of a start end in an answer that JSON can hold."""
    text = "\n".join(["vLLM API server version 0.19.0", MODEL, *lines, ""])
    with suppress(KvplanError):
        answer = kvplan.explain(text, gpu="h100", offline=True)
        json.dumps(answer.to_dict(), allow_nan=False)


@given(st.text(max_size=300))
def test_any_message(text: str) -> None:
    """Prefixes are taken off any text."""
    assert all(message.text is not None for message in messages(text))


@given(st.text(alphabet="'\"()[]{},=: ab1\\<>", max_size=200))
def test_any_settings(text: str) -> None:
    """Settings of any text are names and texts."""
    assert all(name and value for name, value in settings_of(text))


@given(st.text(alphabet="0123456789.,- GiBMTK", max_size=40))
def test_any_figure(text: str) -> None:
    """A figure is finite or none."""
    for read in (whole, decimal, size):
        value = read(text)
        assert value is None or abs(value) < 1 << 63
