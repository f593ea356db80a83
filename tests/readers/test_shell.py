"""Pasted shell texts to commands: quotes, continuations, variables, and what is refused."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from kvplan.core.errors import BadValue
from kvplan.readers.shell import LONGEST, expand, read_commands

# A text, and the words of its commands.
TEXTS = [
    ("vllm serve x", [["vllm", "serve", "x"]]),
    ("a \\\n  b \\  \n c", [["a", "b", "c"]]),
    ("a `\n b", [["a", "b"]]),
    ("a ^\r\n b", [["a", "b"]]),
    ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
    ('a --x=\'{"m": "n"}\'', [["a", '--x={"m": "n"}']]),
    ('a "q \\"r\\" $"', [["a", 'q "r" $']]),
    ("a ''", [["a", ""]]),
    ("a # b\nc", [["a"], ["c"]]),
    ("a x#y", [["a", "x#y"]]),
    ("a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
    ("a 3 > log 2>&1 < in b", [["a", "3", "b"]]),
    ("a &>> log b", [["a", "b"]]),
    ("X=1\na $X ${X} ${Y:-2} ${Y-3} '$X' \"$X\" $Z", [["a", "1", "1", "2", "3", "$X", "1", "$Z"]]),
    ("export X=1 Y=2\na $X$Y", [["a", "12"]]),
    ("a $(b 'c' (d)) e", [["a", "$(b 'c' (d))", "e"]]),
    ("a --n=$(nproc)", [["a", "--n=$(nproc)"]]),
    ("", []),
    ("X=1", []),
]

REFUSED = [
    ("a 'b", "' that is not closed"),
    ('a "b', '" that is not closed'),
    ("a $(b", "$ that is not closed"),
    ("a\0b", "NUL"),
    ("a" * (LONGEST + 1), "131,072 at most"),
    ("x" * 10_000_000, "10,000,000 characters"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=[text for text, _ in TEXTS])
def test_words(text: str, expected: list[list[str]]) -> None:
    """A text is cut as a shell cuts it."""
    assert expected == [list(command.words) for command in read_commands(text)]


def test_variables_of_a_command() -> None:
    """What stands before a command and what was set earlier, and no more than that."""
    commands = read_commands("A=1\nB=2 c\nd")

    assert [{"A": "1", "B": "2"}, {"A": "1"}] == [dict(c.variables) for c in commands]


@pytest.mark.parametrize(("text", "word"), REFUSED, ids=[word for _, word in REFUSED])
def test_refused(text: str, word: str) -> None:
    """What is no command line is refused in a sentence, and at once."""
    begin = time.perf_counter()
    with pytest.raises(BadValue) as refused:
        read_commands(text)

    assert word in refused.value.message
    assert len(refused.value.message) < 300
    assert time.perf_counter() - begin < 1


def test_variables_that_double() -> None:
    """A variable made of two of another, sixty times, ends in a sentence."""
    lines = ["A0=xxxxxxxxxx", *(f"A{n + 1}=$A{n}$A{n}" for n in range(60)), "vllm serve $A60"]

    with pytest.raises(BadValue, match="grow past 128 KiB"):
        read_commands("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    ["$(" * 60_000, "'" * 131_071, "\\\n" * 65_000, "$A" * 65_000, "(" * 131_072, "a " * 65_000],
)
def test_long_texts_are_read_at_once(text: str) -> None:
    """No text of the longest kind takes a second."""
    begin = time.perf_counter()
    with suppress(BadValue):
        read_commands(text)

    assert time.perf_counter() - begin < 1


def test_an_unknown_variable_stays() -> None:
    """What nobody has set is left as it is written."""
    assert "a $B c" == expand("a $B ${C}", {"C": "c"})
