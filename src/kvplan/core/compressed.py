"""Compressed attention: a window of whole tokens, and one entry for each group before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvplan.core.formats import NOTHING, Format, Stored
from kvplan.core.layers import FLOAT32_BYTES, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Layer):
    """DeepSeek V4: a window of whole tokens and one entry for each full group of ``ratio`` tokens.

    Keys and values are one tensor of ``dim`` elements. Two forms (transformers 5.24.0,
    models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4CSACache and DeepseekV4HCACache):

    * with ``index_dim`` (CSA) a group also reads the one before it: the unfinished group waits as
      twice as wide entries, and the last full group stays beside the entries with a float32 gate;
      compressor and indexer keep the same things at their own widths;
    * without (HCA) only the tokens of the unfinished group wait, with their gates.

    Where groups do not overlap (V4.1), an indexer's key is made of each entry, and what waits is
    that of the second form.
    """

    dim: int
    size: int
    ratio: int
    index_dim: int = 0
    overlaps: bool = True

    kind: ClassVar[str] = "compressed_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """Window, compressed entries, and the buffers of the unfinished group."""
        total = fmt.keys(min(tokens, self.size - 1), 1, self.dim)
        groups, waiting = divmod(tokens, self.ratio)
        if not self.index_dim or not self.overlaps:
            total += Stored(waiting * self.dim * 4) + self._entries(groups, fmt, self.dim)
            return total + self._entries(groups, fmt, self.index_dim)
        for width in (self.dim, self.index_dim):
            total += self._entries(groups, fmt, width)
            total += Stored(waiting * 2 * width * 4)
            if groups:
                total += Stored(self.ratio * width * (2 + FLOAT32_BYTES))
        return total

    @staticmethod
    def _entries(groups: int, fmt: Format, width: int) -> Stored:
        return fmt.keys(groups, 1, width) if width else NOTHING

    def per_token(self, fmt: Format) -> int | None:
        """None: entries come in steps of ``ratio`` tokens."""
        return None

    @property
    def window(self) -> int | None:
        """The window of whole tokens."""
        return self.size

    @property
    def period(self) -> int:
        """The compression ratio."""
        return self.ratio

    @property
    def heads(self) -> int | None:
        """One: keys and values are shared by every query head."""
        return 1

    @property
    def key_width(self) -> int | None:
        """Elements of the one tensor."""
        return self.dim

    @property
    def value_width(self) -> int | None:
        """Values are the keys."""
        return 0

    def formula(self, fmt: Format) -> str:
        """Window, entries and indexer."""
        entry = f"{self.dim}" + (f" + {self.index_dim} indexer" if self.index_dim else "")
        return (
            f"the last {self.size - 1} tokens × {self.dim} elements, one entry of {entry} elements "
            f"each {self.ratio} tokens in {fmt.name}, and the buffers of the unfinished group"
        )
