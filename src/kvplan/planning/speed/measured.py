"""A measurement of one's own server in place of published rates: ``--calibration FOLDER``.

    decode step    fixed + batch × (sequence + read × context)
    prefill        fixed + token × length + pair × pairs(length)

``fixed`` is the weights' bytes at the rate that was reached, ``read`` the cache's: on the same card
and engine another model's are theirs times its own bytes over the measured ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.core.step import AttentionCost, Chunk, Knot, StepCost, pairs
from kvplan.engines.base import EnginePlan

FILE: Final = "calibration.json"
MOST_BYTES: Final = 4 << 20
LEAST_ERROR: Final = 0.05  # a repeated run differs by so much
OTHER_MODEL: Final = 0.15  # added for bytes that stand for another model's kernels
LONG: Final = 1 << 16  # tokens of a step to which the cost of new tokens is a straight line


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Seconds of decode steps; ``error`` is the largest relative one of the points they are of."""

    fixed_s: float
    sequence_s: float
    read_s: float
    error: float

    def seconds(self, batch: float, context: float) -> float:
        """A step of ``batch`` sequences that see ``context`` tokens each."""
        return self.fixed_s + batch * (self.sequence_s + self.read_s * context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Seconds of a prompt on top of a step's fixed cost."""

    token_s: float
    pair_s: float
    error: float

    def seconds(self, tokens: int) -> float:
        """Of a prompt that is computed whole."""
        return self.token_s * tokens + self.pair_s * pairs(Chunk(0, tokens), None)


class Reads(NamedTuple):
    """What a decode step reads of one rank: the weights, and a token of one sequence's cache."""

    weights_bytes: int
    token_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was measured of one engine on one card (None: the machine's CPU) with one model."""

    engine: str | None
    version: str | None
    model: str
    card: str | None
    decode: Decode
    prefill: Prefill | None
    reads: Reads | None
    decode_points: tuple[tuple[float, float, float], ...] = ()
    prefill_points: tuple[tuple[int, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The file's content."""
        return asdict(self) | {"reads": self.reads._asdict() if self.reads else None}

    def cost(self, own: Reads | None = None) -> StepCost:
        """The cost of a step of the measured model, or of one that reads other bytes."""
        weights = cache = 1.0
        if own is not None and self.reads is not None:
            weights = own.weights_bytes / self.reads.weights_bytes
            cache = own.token_bytes / self.reads.token_bytes
        token = self.prefill.token_s * weights if self.prefill else 0.0
        pair = self.prefill.pair_s * cache if self.prefill else 0.0
        return StepCost(
            fixed_s=self.decode.fixed_s * weights,
            sequence_s=self.decode.sequence_s * weights,
            linear=(Knot(1, 0.0), Knot(LONG, token * LONG)),
            attention=(AttentionCost(window=None, read_s=self.decode.read_s * cache, pair_s=pair),),
            source=f"measured: {self.engine} {self.version or ''} with {self.model}",
        )

    def is_of(self, own: Reads) -> bool:
        """Whether a model reads the very bytes that were measured."""
        return self.reads == own

    def error(self, own: Reads) -> float:
        """The relative half width of the band."""
        seen = max(self.decode.error, self.prefill.error if self.prefill else 0.0, LEAST_ERROR)
        return seen if self.is_of(own) else seen + OTHER_MODEL


def reads_of(plan: EnginePlan) -> Reads | None:
    """What a plan's decode step reads of a rank; None where its weights are not known.

    Layers in host memory are read too: a plan that holds none on its card is asked without the
    engine's rules.
    """
    context = max(2, plan.asked.context)
    weights = plan.weights_read_bytes
    cache = plan.read_bytes(context, 1) - plan.read_bytes(context - 1, 1)
    if not weights or not cache:
        from kvplan.engines.registry import engine_of

        plainly = engine_of("none")
        stored = plan.asked.flags.get("--cache-type-k")
        flags = {} if stored is None else {"--kv-dtype": stored}
        asked = replace(plan.asked, version=None, flags=flags)
        plain = plainly.plan(plan.model, plan.node, asked)
        weights = plain.weights_read_bytes
        cache = plain.read_bytes(context, 1) - plain.read_bytes(context - 1, 1)
    return Reads(weights, cache) if weights and cache else None


def read_calibration(folder: str | Path) -> Calibration:
    """The calibration of a folder that ``kvplan measure -o`` wrote, or of the file itself.

    Raises:
        SourceUnreachable: there is none.
        BadFile: it is none of ours, or its figures are none.
    """
    path = Path(folder)
    path = path / FILE if path.is_dir() else path
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SourceUnreachable(
            f"{path} cannot be read: {error.strerror or error}.",
            "Measure at two lengths: kvplan measure URL --prompt 128,2k -o FOLDER.",
        ) from None
    try:
        found = json.loads(data)
        return _of(found)
    except (ValueError, LookupError, TypeError, RecursionError):
        raise BadFile(f"{path} is no calibration of kvplan measure.") from None


def _of(found: Mapping[str, Any]) -> Calibration:
    prefill, reads = found["prefill"], found["reads"]
    return Calibration(
        engine=_name(found["engine"]),
        version=_name(found["version"]),
        model=str(found["model"])[:400],
        card=_name(found["card"]),
        decode=Decode(**_figures(found["decode"])),
        prefill=Prefill(**_figures(prefill)) if prefill else None,
        reads=Reads(*(int(reads[key]) for key in Reads._fields)) if reads else None,
    )


def _name(value: object) -> str | None:
    return None if value is None else str(value)[:400]


def _figures(row: Mapping[str, Any]) -> dict[str, float]:
    figures = {str(key): float(value) for key, value in row.items()}
    if not all(isfinite(value) and 0 <= value < 1e6 for value in figures.values()):
        raise ValueError("no figure")
    return figures


def check(calibration: Calibration, plan: EnginePlan, card: str | None) -> Reads:
    """That a calibration is of the plan's engine and card; what the plan reads.

    Raises:
        BadValue: it is of another engine or card, or of a model whose bytes are not known.
    """
    if calibration.engine != plan.engine:
        raise BadValue(
            f"--calibration is of {calibration.engine}, and the plan of {plan.engine}.",
            f"Ask with --engine {calibration.engine}, or measure {plan.engine}.",
        )
    if calibration.card != card:
        raise BadValue(
            f"--calibration is of {calibration.card or 'a CPU'}, and the plan of "
            f"{card or 'no card'}.",
            "A calibration holds for the card that was measured.",
        )
    own = reads_of(plan)
    if own is None or (calibration.reads is None):
        raise BadValue("--calibration needs weights whose bytes are known.")
    return own
