"""``measure compare A B``: two measurements side by side, run by run, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from kvplan.core.errors import BadQuestion
from kvplan.measuring.folder import read_answer
from kvplan.planning.answer import Answer

SAME: Final = ("prefix", "prompt", "concurrency", "rate", "reuse", "pressure")
# Figure, path in a run, whether more is better.
FIGURES: Final = (
    ("ttft_s", ("ttft_s", "p50"), False),
    ("ttft_p99_s", ("ttft_s", "p99"), False),
    ("itl_s", ("itl_s", "p50"), False),
    ("itl_p99_s", ("itl_s", "p99"), False),
    ("output_tokens_per_s", ("output_tokens_per_s",), True),
    ("cached_tokens", ("cached_tokens",), True),
    ("peak_memory_bytes", ("peak_memory_bytes",), False),
    ("failed", ("failed",), False),
    ("preemptions", ("preemptions",), False),
)
NEAR: Final = 0.05  # two runs of the same thing differ by so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A figure of a run that both measurements have; ``verdict`` is of the second."""

    run: Mapping[str, Any]
    name: str
    first: float
    second: float
    ratio: float | None
    verdict: str

    @property
    def title(self) -> str:
        """The run in few words."""
        run = self.run
        length = f" {run['prompt']}" if run["prompt"] else ""
        rate = run["rate"]
        pace = f"{run['concurrency']} at once" if rate is None else f"{rate} a second"
        off = ", reuse off" if run["reuse"] is False else ""
        return f"{run['prefix']}{length}, {pace}{off}{', under pressure' * bool(run['pressure'])}"

    @property
    def figure(self) -> str:
        """The figure in words."""
        if self.name.endswith("_per_s"):
            return self.name.removesuffix("_per_s").replace("_", " ") + "/s"
        return self.name.removesuffix("_s").removesuffix("_bytes").replace("_", " ")

    def to_dict(self) -> dict[str, Any]:
        """A row of ``rows``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareAnswer(Answer):
    """Two folders compared; ``settings`` are values of server and machine that are not the same."""

    verb: ClassVar[str] = "compare"

    folders: tuple[str, str]
    rows: tuple[Compared, ...]
    settings: tuple[tuple[str, object, object], ...]
    warnings: tuple[str, ...] = ()

    def body(self) -> dict[str, Any]:
        """The keys of a comparison."""
        return {
            "folders": list(self.folders),
            "rows": [row.to_dict() for row in self.rows],
            "settings": [
                {"name": name, "first": first, "second": second}
                for name, first, second in self.settings
            ],
        }


def compare(first: str | Path, second: str | Path) -> CompareAnswer:
    """What changed from one measurement to another.

    Raises:
        SourceUnreachable: a folder has no measurement.
        BadFile: it is none of ours.
        BadQuestion: no run of one is a run of the other.
    """
    answers = read_answer(first), read_answer(second)
    runs = [{_key(run): run for run in answer["runs"]} for answer in answers]
    shared = [key for key in runs[0] if key in runs[1]]
    if not shared:
        raise BadQuestion(
            f"{first} and {second} have no run in common.",
            "Runs are the same with the same --prompt, --concurrency or --rate, and --prefix.",
        )
    lacking = [len(each) - len(shared) for each in runs]
    return CompareAnswer(
        folders=(str(first), str(second)),
        rows=tuple(row for key in shared for row in _rows(runs[0][key], runs[1][key])),
        settings=tuple(_settings(*answers)),
        warnings=tuple(
            f"{count:,} runs of {name} are not in the other."
            for count, name in zip(lacking, (first, second), strict=True)
            if count
        ),
    )


def _key(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(repr(run.get(name)) for name in SAME)


def _rows(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Compared]:
    named = {name: first.get(name) for name in SAME}
    for name, path, more_is_better in FIGURES:
        one, other = _value(first, path), _value(second, path)
        if one is None or other is None or (not one and not other):
            continue
        yield Compared(
            run=named,
            name=name,
            first=one,
            second=other,
            ratio=other / one if one else None,
            verdict=_verdict(one, other, more_is_better),
        )


def _verdict(one: float, other: float, more_is_better: bool) -> str:
    if one and abs(other / one - 1) <= NEAR:
        return "same"
    return "better" if (other > one) == more_is_better else "worse"


def _value(run: Mapping[str, Any], path: Sequence[str]) -> float | None:
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def _settings(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    """Values of server and environment that differ, the time apart."""
    for part in ("server", "environment"):
        one, other = _flat(first.get(part)), _flat(second.get(part))
        for name in dict.fromkeys([*one, *other]):
            if name != "at" and one.get(name) != other.get(name):
                yield name, one.get(name), other.get(name)


def _flat(value: object, name: str = "") -> dict[str, object]:
    if not isinstance(value, Mapping):
        return {name: value} if name else {}
    found: dict[str, object] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{name}.{key}" if name else str(key))
    return found
