"""One question at many points: rates, lengths, pools, cards; run side by side, kept, resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from kvplan.core.errors import KvplanError
from kvplan.planning.answer import Answer
from kvplan.readers.devices import find_device, own_devices
from kvplan.simulation.axes import Axis, parse_axis, points
from kvplan.simulation.fast.kept import tell_first_time
from kvplan.simulation.parallel import in_parallel
from kvplan.simulation.results import Results, digest
from kvplan.simulation.simulate import Progress, simulate
from kvplan.simulation.workload import check_read_again

PREEMPTS: Final = 0.01  # a share of preempted requests that says that the pool is full


class Point(NamedTuple):
    """Where a question was asked, and its answer's JSON: an answer's or an error's."""

    at: dict[str, Any]
    answer: dict[str, Any]

    @property
    def is_answered(self) -> bool:
        """Whether there was an answer."""
        return "error" not in self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAnswer(Answer):
    """All points in their order; ``resumed`` of them were there before."""

    verb: ClassVar[str] = "simulate"
    warnings: tuple[str, ...] = ()

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    resumed: int

    @property
    def full_from(self) -> dict[str, Any] | None:
        """The first point with more than a hundredth of its requests preempted."""
        for point in self.points:
            if point.is_answered and point.answer["preemption_rate"] > PREEMPTS:
                return point.at
        return None

    def body(self) -> dict[str, Any]:
        """Axes and points."""
        return {
            "sweep": {
                "axes": [{"name": axis.name, "values": list(axis.values)} for axis in self.axes],
                "points": [{"at": point.at, "answer": point.answer} for point in self.points],
                "resumed": self.resumed,
                "full_from": self.full_from,
            }
        }

    def rows(self) -> list[dict[str, Any]]:
        """A flat row a point: where it is, then every figure under its path."""
        return [
            {
                **{f"at.{name}": value for name, value in point.at.items()},
                **dict(_flat(point.answer)),
            }
            for point in self.points
        ]


def sweep(
    question: Mapping[str, Any],
    axes: Sequence[str],
    *,
    results: str | Path | None = None,
    backend: str = "loky",
    jobs: int = -1,
    progress: Progress | None = None,
) -> SweepAnswer:
    """A question at every point of its axes.

    Args:
        question: the keywords of ``simulate``.
        axes: each as ``rate=1:20``.
        results: a folder that keeps finished points; those that are there are not run again.
        backend: ``loky`` for all cores of this machine, ``ray`` for a cluster that runs.
        jobs: runs at once; -1 is all cores.
        progress: called with points that are done, and how many there are.

    Raises:
        BadQuestion: an axis that is none, a backend that is not there.
        SourceUnreachable: the folder cannot be written.
    """
    check_read_again(question.get("trace"))
    parsed = tuple(map(parse_axis, axes))
    wanted = points(parsed)
    # A process that runs points may have begun in another folder.
    results = Path(results).absolute() if results is not None else None
    kept = Results(results)
    defaults = {name: one.default for name, one in signature(simulate).parameters.items()}
    asked = [{**question, **at} for at in wanted]
    keys = [digest(one | _own_card(one), defaults) for one in asked]
    found = {key: answer for key in keys if (answer := kept.find(key)) is not None}
    resumed = len(found)
    calls = [
        (dict(question), at, key, None if backend == "ray" else results)
        for at, key in zip(wanted, keys, strict=True)
        if key not in found
    ]
    places = dict(zip(keys, wanted, strict=True))
    if calls and question.get("engine") in (None, "vllm"):
        tell_first_time()  # the runs' own processes cannot
    for key, answer in in_parallel(run_point, calls, backend=backend, jobs=jobs) if calls else ():
        found[key] = answer
        if backend == "ray":
            kept.save(key, places[key], answer)
        if progress is not None:
            progress(len(found), len(wanted))
    return SweepAnswer(
        axes=parsed,
        points=tuple(Point(at, found[key]) for at, key in zip(wanted, keys, strict=True)),
        resumed=resumed,
    )


def _own_card(question: Mapping[str, Any]) -> dict[str, str]:
    """What a card of one's own is today: a point of it is found again while it stays the same."""
    own = {device.name: device for device in own_devices()}
    try:
        device, _ = find_device(question.get("gpu") or "") if own else (None, ())
    except KvplanError:
        return {}
    same = device is not None and device.name in own
    return {"card": repr(replace(device, price=None))} if device and same else {}


def run_point(
    question: dict[str, Any], at: dict[str, Any], key: str, results: str | Path | None
) -> tuple[str, dict[str, Any]]:
    """One point, in whichever process; what it cannot answer is an error's JSON.

    It is kept by who ran it, before anybody is told: what was finished is never run again. On a
    cluster the folder is another machine's, and the asker keeps it.
    """
    try:
        answer = simulate(**{**question, **at}).to_dict()
    except KvplanError as error:
        answer = {"error": error.to_dict()}
    Results(results).save(key, at, answer)
    return key, answer


def _flat(value: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Scalars under their paths; lists are left out."""
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        path = f"{above}{key}"
        if isinstance(inner, Mapping):
            found += _flat(inner, f"{path}.")
        elif not isinstance(inner, list):
            found.append((path, inner))
    return found
