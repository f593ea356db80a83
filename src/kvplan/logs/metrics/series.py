"""Which series of an engine say what, and how several of one name make one figure.

A server of several ranks exports a series for each. Ranks of one replica (tensor, pipeline and
expert parallel) see the same requests, so the fullest speaks for them; replicas (data parallel) add
up where the figure counts something, and where it is a share the fullest replica is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kvplan.logs.metrics.exposition import Sample

# Labels that tell ranks and processes of one replica apart.
RANK_LABELS: Final = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})


class Join(Enum):
    """How replicas make one figure."""

    SUM = "sum"
    FULLEST = "fullest"
    LEAST = "least"


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A figure, and the names it had, newest first: the first that is there is read."""

    figure: str
    names: tuple[str, ...]
    unit: str
    join: Join = Join.SUM
    counter: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def keeps(self, sample: Sample) -> bool:
        """Whether the sample's labels are among those asked for."""
        asked = all(sample.labels.get(key) in values for key, values in self.labels.items())
        return asked and not any(sample.labels.get(k) in v for k, v in self.without.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLabels:
    """A series of value 1 whose labels state the pool: figure by label."""

    name: str
    figures: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Exporter:
    """An engine's series, and what they cannot say."""

    engine: str
    prefix: str
    series: tuple[Series, ...]
    pool: PoolLabels | None = None
    model_labels: tuple[str, ...] = ("model_name",)
    missing: Mapping[str, str] = field(default_factory=dict)


def joined(series: Series, samples: Iterable[Sample]) -> float | None:
    """The figure of a series, or None where none of its samples is there."""
    replicas: dict[tuple[tuple[str, str], ...], list[float]] = defaultdict(list)
    for sample in samples:
        if series.keeps(sample):
            kept = sorted(item for item in sample.labels.items() if item[0] not in RANK_LABELS)
            replicas[tuple(kept)].append(sample.value)
    if not replicas:
        return None
    return _JOINS[series.join](max(values) for values in replicas.values())


_JOINS: Final[Mapping[Join, Callable[[Iterable[float]], float]]] = {
    Join.SUM: sum,
    Join.FULLEST: max,
    Join.LEAST: min,
}
