"""Prompts as rows of units, so that a longest common beginning is an equality of arrays.

    a tokenizer, or ids of tokens      a unit is a token
    text without a tokenizer           a unit is a byte, four of which are taken for a token
    block ids of a trace               a unit is a block and all that came before it

Bytes rather than fours of bytes: text that stands equally behind a difference of one letter is
found to be equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvplan.simulation.prompts.encoder import Tokenizer
from kvplan.simulation.prompts.messages import Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Units = NDArray[Any]

SHOWN = 60  # characters of a text on either side of a parting


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request's prompt.

    ``kept`` are the units that an engine holds when it has answered, the prompt's first; they are
    the prompt's own where the answer is not known. ``text`` and ``parts`` are None where ids came.
    """

    units: Units
    kept: Units
    tokens: int
    text: str | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Requests in the order in which they came.

    A unit is ``unit_tokens`` tokens, and ``units_per_token`` units are a token; one of them is 1.
    """

    rows: Sequence[Prompt]
    source: str
    counted: str  # what the tokens are
    estimated: bool = False
    unit_tokens: int = 1
    units_per_token: int = 1
    tokenizer: Tokenizer | None = None  # where units are its tokens
    num_skipped: int = 0
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def are_blocks(self) -> bool:
        """Whether equal units mean that all before them is equal too."""
        return self.unit_tokens > 1

    @property
    def total_tokens(self) -> int:
        """Of all prompts."""
        return sum(row.tokens for row in self.rows)

    def tokens(self, units: int, prompt: int) -> int:
        """Tokens of so many leading units of a prompt of ``prompt`` tokens."""
        return min(prompt, units * self.unit_tokens // self.units_per_token)

    def token_at(self, units: int) -> int:
        """The token in which a unit lies."""
        return units * self.unit_tokens // self.units_per_token

    def place(self, row: Prompt, unit: int) -> int | None:
        """The character of a prompt's text at which a unit begins; None where ids came."""
        if row.text is None:
            return None
        if self.tokenizer is None:
            return len(row.text.encode("utf-8", "replace")[:unit].decode("utf-8", "ignore"))
        starts = self.tokenizer.offsets(row.text)
        return starts[unit] if unit < len(starts) else len(row.text)

    def message_at(self, row: Prompt, character: int) -> int | None:
        """The index of the message that a character is in, None outside of all."""
        ends, at = [], 0
        for part in row.parts:
            at += len(part.text)
            ends.append(at)
        place = bisect_right(ends, character)
        return row.parts[place].message if place < len(row.parts) else None

    def shown(self, row: Prompt, unit: int, *, before: bool = False) -> str:
        """What stands before a unit, or from it on: text, or ids where no text is there."""
        character = self.place(row, unit)
        if row.text is None or character is None:
            ids = row.units[max(0, unit - 8) : unit] if before else row.units[unit : unit + 8]
            return " ".join(map(str, ids.tolist()))
        if before:
            return row.text[max(0, character - SHOWN) : character]
        return row.text[character : character + SHOWN]
