"""Blocks of tokens as ids: equal ids are equal blocks behind equal beginnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvplan.core.errors import BadFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_BLOCKS = 20_000_000  # different ones; about 4 GB


class BlockIds:
    """Gives each block, with all that came before it, a number; the same one when seen again."""

    def __init__(self, block: int) -> None:
        self.block = block
        self._known: dict[tuple[int, bytes], int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, tokens: NDArray[Any]) -> list[int]:
        """The ids of the full blocks of a prompt; all prompts have units of one type.

        Raises:
            BadFile: more different blocks than can be held.
        """
        data, size = tokens.tobytes(), tokens.itemsize * self.block
        ids, parent = [], -1
        for start in range(0, len(data) - size + 1, size):
            key = parent, data[start : start + size]
            parent = self._known.setdefault(key, len(self._known))
            ids.append(parent)
        if len(self._known) > MOST_BLOCKS:
            raise BadFile(f"There are more than {MOST_BLOCKS:,} different blocks.", "Take a part.")
        return ids
