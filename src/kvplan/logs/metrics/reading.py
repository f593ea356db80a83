"""A scrape of /metrics as figures: what the server holds, how full it is, what waits, what hit.

lines ─► samples by series ─► figures of the server (ranks and replicas joined) ─► Start

The hit rate is hits over queries, both counters since the start; an engine's own gauge is of its
last steps, and is shown under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kvplan.logs.facts import Fact, Value
from kvplan.logs.metrics.exposition import Sample, help_of, sample
from kvplan.logs.metrics.llamacpp import LLAMACPP
from kvplan.logs.metrics.series import Exporter, Series, joined
from kvplan.logs.metrics.sglang import SGLANG
from kvplan.logs.metrics.tgi import TGI
from kvplan.logs.metrics.vllm import VLLM

EXPORTERS: Final = (VLLM, SGLANG, LLAMACPP, TGI)
MOST_SAMPLES: Final = 20_000  # of the series that are read; a server of 512 ranks has 10,000
MOST_VALUE: Final = 1 << 62
_SERIES: Final = frozenset(
    name
    for exporter in EXPORTERS
    for name in (
        *(name for series in exporter.series for name in series.names),
        *((exporter.pool.name,) if exporter.pool else ()),
    )
)
# Labels that tell replicas apart, by the word that names one.
_REPLICAS: Final = (("engine", "DP"), ("dp_rank", "DP"))


@dataclass(frozen=True, slots=True)
class Numbered:
    """A sample and the line it is of."""

    line: int
    sample: Sample
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The figures of one scrape, by name; ``pools`` are what each replica states of its own."""

    exporter: Exporter
    figures: Mapping[str, float]
    pools: tuple[Fact, ...]
    lines: Mapping[str, tuple[int, str]]
    model: str | None = None
    counts_blocks: bool = False
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def get(self, name: str) -> float | None:
        """A figure, None where the engine exports none."""
        return self.figures.get(name)

    @property
    def hit_rate(self) -> float | None:
        """Tokens that were found over tokens that were looked for, since the start."""
        return share(self.get("prefix_hit_tokens"), self.queried)

    @property
    def queried(self) -> float | None:
        """Tokens that were looked for; llama.cpp counts those that it computed beside the hits."""
        computed, hits = self.get("prefix_computed_tokens"), self.get("prefix_hit_tokens")
        if computed is not None and hits is not None:
            return computed + hits
        return self.get("prefix_queried_tokens")

    def pool(self, name: str) -> int | float | None:
        """The least of what the replicas state of their pools."""
        values = [
            fact.value
            for fact in self.pools
            if fact.name == name and isinstance(fact.value, int | float)
        ]
        return min(values) if values else None

    def facts(self) -> Iterator[Fact]:
        """The figures with the lines that they are of."""
        first = min((line for line, _ in self.lines.values()), default=1)
        if self.model:
            yield Fact("model", self.model, first)
        for name, value in self.figures.items():
            line, text = self.lines[name]
            if self.counts_blocks and name.startswith("prefix_"):
                yield Fact(name.replace("_tokens", "_blocks"), _plain(value), line, None, text)
            else:
                yield Fact(name, _plain(value), line, None, text)
        yield from self.pools


def share(part: float | None, whole: float | None) -> float | None:
    """A part of a whole; None where either is not known or there is nothing yet."""
    if part is None or not whole or whole < 0:
        return None
    return min(1.0, max(0.0, part / whole))


def read_metrics(lines: Iterable[str]) -> Reading | None:
    """The figures of the engine that most of the known series are of; None where there are none."""
    gathered = Gathered()
    for number, line in enumerate(lines, 1):
        gathered.take(number, line)
    exporter = max(EXPORTERS, key=gathered.count)
    return gathered.reading(exporter) if gathered.count(exporter) else None


@dataclass(slots=True)
class Gathered:
    """Samples by series, and how many there are of each engine."""

    series: dict[str, list[Numbered]] = field(default_factory=dict)
    help: dict[str, str] = field(default_factory=dict)
    kept: int = 0
    left: int = 0

    def take(self, number: int, line: str) -> None:
        """Keep a line's sample where its series is known."""
        if line.startswith("#"):
            described = help_of(line)
            if described is not None and described[0] in _SERIES:
                self.help[described[0]] = described[1]
            return
        found = sample(line)
        if found is None or found.name not in _SERIES or abs(found.value) >= MOST_VALUE:
            return
        if self.kept >= MOST_SAMPLES:
            self.left += 1
            return
        self.kept += 1
        self.series.setdefault(found.name, []).append(Numbered(number, found, line[:400]))

    def count(self, exporter: Exporter) -> int:
        """How many samples are an engine's."""
        return sum(len(s) for name, s in self.series.items() if name.startswith(exporter.prefix))

    def reading(self, exporter: Exporter) -> Reading:
        """The figures of an engine."""
        figures: dict[str, float] = {}
        lines: dict[str, tuple[int, str]] = {}
        for series in exporter.series:
            found = self._first(series)
            value = joined(series, (numbered.sample for numbered in found))
            if value is not None:
                figures[series.figure] = value
                lines[series.figure] = (found[-1].line, found[-1].text)
        queries = self.help.get("vllm_gpu_prefix_cache_queries", "")
        return Reading(
            exporter=exporter,
            figures=figures,
            pools=tuple(self._pools(exporter)),
            lines=lines,
            model=self._model(exporter),
            counts_blocks="blocks" in queries and "vllm_prefix_cache_queries" not in self.series,
            notes=tuple(self._notes()),
        )

    def _first(self, series: Series) -> list[Numbered]:
        """The samples of the newest name that is there."""
        return next((self.series[name] for name in series.names if name in self.series), [])

    def _pools(self, exporter: Exporter) -> Iterator[Fact]:
        """What the labels of a pool's series state, by replica."""
        if exporter.pool is None:
            return
        for numbered in self.series.get(exporter.pool.name, ())[:4096]:
            labels = numbered.sample.labels
            rank = _replica(labels)
            for label, (name, unit) in exporter.pool.figures.items():
                value = _label(labels.get(label))
                if value is not None and not (unit and isinstance(value, str)):
                    yield Fact(name, value, numbered.line, rank, numbered.text)

    def _model(self, exporter: Exporter) -> str | None:
        for samples in self.series.values():
            for numbered in samples[:1]:
                for label in exporter.model_labels:
                    if name := numbered.sample.labels.get(label):
                        return name[:400]
        return None

    def _notes(self) -> Iterator[str]:
        if self.left:
            yield f"{self.left:,} samples beyond the first {MOST_SAMPLES:,} are left out."


def _replica(labels: Mapping[str, str]) -> str | None:
    for label, word in _REPLICAS:
        if labels.get(label, "").isdecimal():
            return f"{word}{labels[label][:9]}"
    return None


def _label(text: str | None) -> Value | None:
    """A label's value as Python printed it; None where it is unset."""
    if text is None or text in ("None", ""):
        return None
    if text.isdecimal() and len(text) <= 18:
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return text[:400]
    return value if abs(value) < MOST_VALUE else None


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value
