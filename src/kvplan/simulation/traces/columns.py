"""Columns that grow row by row, each value checked; what becomes of them is a ``Traffic``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kvplan.core.errors import BadFile
from kvplan.simulation.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_REQUESTS = 20_000_000
MOST_IDS = 1 << 27  # 1 GiB of them
MOST_TOKENS = 1 << 27  # of one request: ten times the longest context there is
MOST_SECONDS = 1e10  # three centuries: also an epoch's milliseconds taken for seconds
MOST_TOLD = 20  # skipped rows that are told one by one
MOST_BARREN = 1_000_000  # rows in a row without a request
MOST_NAMES = 10_000_000  # ids that are texts; 2 GB of them

_LOWEST = 1 << 62


class BadRow(ValueError):
    """A row that is no request, and why; counted, never fatal."""


class Columns:
    """Requests being read.

    Invariant: a row is in all columns or in none, whatever it raised.
    """

    def __init__(self, source: str, hash_block: int = 16, most: int | None = None) -> None:
        self.source = source
        self.hash_block = hash_block
        self.most = most
        self.arrival_s = array("d")
        self.prompt_tokens = array("q")
        self.output_tokens = array("q")
        self.after = array("q")
        self.think_s = array("d")
        self.priority = array("q")
        self.hash_ids = array("q")
        self.hash_ends = array("q")
        self.num_skipped = 0
        self.skipped: list[str] = []
        self.notes: dict[str, None] = {}
        self.max_in_flight: int | None = None
        self.is_drawn = False
        self._barren = 0
        self._interned: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def full(self) -> bool:
        """Whether as many requests are read as were asked for."""
        return self.most is not None and len(self) >= self.most

    def add(
        self,
        *,
        arrival_s: Any,
        prompt_tokens: Any,
        output_tokens: Any,
        ids: Sequence[Any] = (),
        after: int = -1,
        think_s: Any = 0.0,
        priority: Any = 0,
    ) -> int:
        """Take a request; its index.

        Raises:
            BadRow: a value that no request has.
            BadFile: more requests or ids than can be held.
        """
        prompt = tokens(prompt_tokens, "prompt")
        output = tokens(output_tokens, "output")
        arrival, think = seconds(arrival_s, "arrival"), seconds(think_s, "think time")
        rank = _whole(priority, "priority")
        if abs(rank) > 1 << 31:
            raise BadRow(f"a priority of {rank:,}")
        self._extend(ids, prompt)
        self.arrival_s.append(arrival)
        self.prompt_tokens.append(prompt)
        self.output_tokens.append(output)
        self.after.append(after)
        self.think_s.append(think)
        self.priority.append(rank)
        self.hash_ends.append(len(self.hash_ids))
        self._barren = 0
        if len(self) > MOST_REQUESTS:
            raise BadFile(
                f"{self.source} has more than {MOST_REQUESTS:,} requests.",
                "Take the first ones with --requests N.",
            )
        return len(self) - 1

    def _extend(self, ids: Sequence[Any], prompt: int) -> None:
        """The ids of a row, or none of them."""
        before = len(self.hash_ids)
        if len(ids) > -(-prompt // self.hash_block):
            raise BadRow(f"{len(ids):,} ids of {self.hash_block} tokens for a prompt of {prompt:,}")
        if before + len(ids) > MOST_IDS:
            raise BadFile(f"{self.source} has more than {MOST_IDS:,} block ids.", "Take a part.")
        try:
            self.hash_ids.extend(ids)
        except (TypeError, OverflowError):
            del self.hash_ids[before:]
            self.hash_ids.extend([self._number(one) for one in ids])

    def _number(self, one: Any) -> int:
        """A hash of any spelling as a number: its own where 64 bits hold it, else a low one."""
        if type(one) is int and abs(one) < _LOWEST:
            return one
        if not isinstance(one, str | int) or isinstance(one, bool) or len(str(one)) > 200:
            raise BadRow("an id that is neither a number nor a text")
        if len(self._interned) >= MOST_NAMES:
            raise BadFile(f"{self.source} has more than {MOST_NAMES:,} ids that are texts.")
        return self._interned.setdefault(str(one), -_LOWEST - len(self._interned))

    def skip(self, line: int, why: str) -> None:
        """Count a row that was not taken.

        Raises:
            BadFile: a million rows in a row were not.
        """
        self.num_skipped += 1
        self._barren += 1
        if len(self.skipped) < MOST_TOLD:
            self.skipped.append(f"line {line:,}: {why}")
        if self._barren >= MOST_BARREN:
            raise BadFile(
                f"{MOST_BARREN:,} rows in a row of {self.source} are no requests; the first that "
                f"was not is {self.skipped[0]}."
            )

    def note(self, text: str) -> None:
        """Something that was assumed, said once."""
        self.notes[text] = None

    def finish(self) -> Traffic:
        """The traffic, in the order of arrival, from 0 s on.

        Raises:
            BadFile: there is no request.
        """
        import numpy as np

        if not len(self):
            why = f" {self.num_skipped:,} rows are none: {self.skipped[0]}." if self.skipped else ""
            raise BadFile(f"There is no request in {self.source}.{why}")
        columns = {
            "arrival_s": np.array(self.arrival_s),
            "prompt_tokens": np.array(self.prompt_tokens),
            "output_tokens": np.array(self.output_tokens),
            "think_s": np.array(self.think_s),
            "priority": np.array(self.priority),
        }
        ids = np.array(self.hash_ids)
        starts = np.concatenate([[0], np.array(self.hash_ends)])
        after = np.array(self.after)
        columns["arrival_s"] -= columns["arrival_s"].min()
        fallen = int((np.diff(columns["arrival_s"]) < 0).sum())
        if fallen:
            order = np.argsort(columns["arrival_s"], kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
            after = _moved(after, order)
            ids, starts = _permuted(ids, starts, order)
        return Traffic(
            arrival_s=columns["arrival_s"],
            prompt_tokens=columns["prompt_tokens"],
            output_tokens=columns["output_tokens"],
            think_s=columns["think_s"],
            priority=columns["priority"],
            after=after,
            hash_ids=ids,
            hash_starts=starts,
            hash_block=self.hash_block,
            source=self.source,
            max_in_flight=self.max_in_flight,
            is_drawn=self.is_drawn,
            num_skipped=self.num_skipped,
            skipped=tuple(self.skipped),
            notes=(*self.notes, *_told_order(fallen)),
        )


def _told_order(fallen: int) -> Iterator[str]:
    if fallen:
        yield f"{fallen:,} arrivals were before the one above them: requests are sorted by arrival."


def _moved(after: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of predecessors once rows stand in another order."""
    import numpy as np

    place = np.empty(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    return place[after[order]]


def _permuted(
    ids: NDArray[np.int64], starts: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ragged rows in another order."""
    import numpy as np

    lengths = np.diff(starts)[order]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if not len(ids):
        return ids, ends
    shifts = np.repeat(starts[order] - ends[:-1], lengths)
    return ids[shifts + np.arange(len(shifts))], ends


def tokens(value: Any, what: str) -> int:
    """A length of 1 token or more.

    Raises:
        BadRow: anything else.
    """
    number = _whole(value, what)
    if not 1 <= number <= MOST_TOKENS:
        raise BadRow(f"{what} of {_short(number)} tokens")
    return number


def seconds(value: Any, what: str) -> float:
    """A time from 0 on.

    Raises:
        BadRow: anything else, NaN among it.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadRow(f"{what} {_said(value)} is no number") from None
    if isinstance(value, bool) or not 0 <= number <= MOST_SECONDS:
        raise BadRow(f"{what} at {number:g} s")
    return number


def _whole(value: Any, what: str) -> int:
    if type(value) is int:
        return value
    try:
        number = float(value)
        whole = int(number)
    except (TypeError, ValueError, OverflowError):
        raise BadRow(f"{what} {_said(value)} is no whole number") from None
    if isinstance(value, bool) or whole != number:
        raise BadRow(f"{what} {_said(value)} is no whole number")
    return whole


def _said(value: Any) -> str:
    """A value for a sentence, at most 40 characters of it."""
    try:
        text = "missing" if value is None else repr(value)
    except ValueError:
        return "of too many digits"
    return text if len(text) <= 40 else f"{text[:39]}…"


def _short(number: int) -> str:
    return f"{number:,}" if abs(number) < 1 << 60 else "absurdly many"
