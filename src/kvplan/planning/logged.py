"""The question that a logged start answers: its model, card and flags, taken from its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvplan.core.errors import BadQuestion, BadValue, KvplanError
from kvplan.core.units import GIB
from kvplan.core.version import Version
from kvplan.engines.base import Engine
from kvplan.engines.names import ENGINES
from kvplan.engines.registry import engine_of
from kvplan.logs.facts import Start
from kvplan.logs.ledger import cards_of
from kvplan.logs.versions import likely_version
from kvplan.planning.question import Question, ask
from kvplan.readers.devices import find_device
from kvplan.readers.open_model import ModelSource

# Facts that are settings, by the flag that asks for them; a flag that was given goes first.
FLAGS_OF_FACTS: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        name: f"--{name.replace('_', '-')}"
        for name in (
            "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
            "gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs", "enforce_eager",
            "kv_cache_dtype", "num_gpu_blocks_override", "enable_chunked_prefill",
        )
    },
}  # fmt: skip
# What a run resolved goes before what was asked (auto).
RESOLVED: Mapping[str, Mapping[str, str]] = {
    "vllm": {"max_concurrency_tokens": "--max-model-len", "max_model_len": "--max-model-len"},
}
# Types of a cache as the engines' lines name them, and as its flag does.
KV_DTYPES = {
    "fp8": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8_e5m2", "fp8_ds_mla": "fp8_ds_mla",
}  # fmt: skip
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
HELD_BY_OTHERS = 2 * GIB  # less than this that is not free is the process's own context
MOST_CARDS = 4096
_SNAPSHOT = re.compile(r"models--([\w.-]{1,96}?)--([\w.-]{1,96})/snapshots/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is said beside the log, and what to know of how it was read."""

    model: ModelSource | None = None
    gpu: str | None = None
    assume: str = ""
    offline: bool = False
    set: Mapping[str, Any] | None = None


def question_of(start: Start, asking: Asking) -> tuple[Question | None, list[str]]:
    """The question, or None with what is missing.

    Raises:
        BadQuestion: a model or a card that was given beside the log and is not known.
    """
    if start.engine not in ENGINES:
        return None, [f"{start.engine} is read, not planned: there is no prediction beside it."]
    engine, said = engine_of(start.engine), []
    model = asking.model if asking.model is not None else _model(start)
    if model is None:
        return None, ["The log names no model: pass --model to hold it against a prediction."]
    card, missing = _card(start, asking.gpu)
    said += missing
    if not card:
        return None, said
    flags, left = _flags(start, engine)
    said += left
    version, unknown = _version(start, engine)
    said += unknown
    try:
        found = ask(
            model,
            engine=engine.name,
            engine_version=version,
            gpus=_cards(start),
            flags=flags,
            context=_context(start),
            weights_bytes=_file_bytes(start),
            set=asking.set,
            assume=asking.assume,
            offline=asking.offline,
            **card,
        )
    except KvplanError as error:
        if asking.model is not None:
            raise
        return None, [*said, f"No prediction beside the log: {error.message} Pass --model."]
    return replace(found, warnings=(*found.warnings, *said)), said


def _model(start: Start) -> str | None:
    """The model's name; of a path the name that its folder or snapshot has.

    A log is a stranger's text: no path that it names is opened.
    """
    said = start.last("model")
    if said is None or not isinstance(said.value, str):
        return None
    name = said.value.strip().rstrip("/")
    snapshot = _SNAPSHOT.search(name + "/")
    if snapshot is not None:
        return f"{snapshot[1]}/{snapshot[2]}"
    parts = [part for part in re.split(r"[\\/]", name) if part]
    if not parts:
        return None
    outer = name.startswith(("/", ".", "~")) or "\\" in name or len(parts) > 2
    return parts[-1] if outer else name


def _card(start: Start, given: str | None) -> tuple[dict[str, Any], list[str]]:
    """``ask``'s arguments of the card.

    Raises:
        UnknownName: a card that was given and is not known.
    """
    total, free = start.most("total_gpu_bytes"), start.least("free_gpu_bytes")
    if given is not None:
        find_device(given)
    named = given or _named_card(start)
    found: dict[str, Any] = {}
    if named is not None:
        found = {"gpu": named}
    elif total is not None and isinstance(total.value, int) and total.value > 0:
        found = {"gpu_memory": total.value}
    else:
        said = "The log names no card: pass --gpu to hold it against a prediction."
        return {}, [said]
    if start.engine == "vllm" and total is not None and free is not None:
        held = int(total.value) - int(free.value)
        if held > HELD_BY_OTHERS and int(free.value) > 0:
            found["free_memory"] = int(free.value)
    return found, []


def _named_card(start: Start) -> str | None:
    said = start.last("gpu")
    if said is None or not isinstance(said.value, str):
        return None
    try:
        find_device(said.value)
    except BadQuestion:
        return None
    return said.value


def _cards(start: Start) -> int:
    cards = 1
    for name in PARALLEL:
        said = start.number(name)
        cards *= max(1, int(said)) if said else 1
    return min(max(cards, len(cards_of(start))), MOST_CARDS)


def _context(start: Start) -> int | None:
    """The length that the log's concurrency is of."""
    length = start.number("max_model_len") or start.number("max_concurrency_tokens")
    return int(length) if length and length > 0 else None


def _file_bytes(start: Start) -> int | None:
    """The file's own size where the loader states it: recipes of a type differ."""
    size = start.number("model_file_bytes")
    return int(size) if size and size > 0 else None


def _flags(start: Start, engine: Engine) -> tuple[dict[str, Any], list[str]]:
    """Flags that the engine's table has, and a word on those that it cannot read."""
    found: dict[str, Any] = {}
    left = []
    for given, text in _given(start):
        flag = engine.flags.find(given)
        if flag is None:
            continue
        pair: tuple[str, Any] | None = (flag.names[0], text)
        if flag.read is None and str(text) in ("False", "false"):
            pair = _opposite(engine, flag.names[0])
        if pair is None:
            continue
        try:
            engine.flags.parse(dict([pair]))
        except BadValue as error:
            left.append(f"Left out of the prediction: {error.message}")
            continue
        found[pair[0]] = pair[1]
    return found, left


def _opposite(engine: Engine, name: str) -> tuple[str, Any] | None:
    """A switch that is off by its opposite; None where it has none."""
    opposite = f"--no-{name.removeprefix('--')}"
    return (opposite, True) if engine.flags.find(opposite) else None


def _given(start: Start) -> Iterator[tuple[str, Any]]:
    """Facts first, then what was given, then what the run resolved: the last counts."""
    for name, flag in FLAGS_OF_FACTS.get(start.engine, {}).items():
        said = start.last(name)
        if said is not None and str(said.value) != "auto":
            yield flag, str(said.value)
    used = start.last("kv_dtype_used")
    if used is not None and start.engine == "vllm" and str(used.value) in KV_DTYPES:
        yield "--kv-cache-dtype", KV_DTYPES[str(used.value)]
    for flag, value in start.flags.items():
        if str(value) != "auto":
            yield flag, value
    for name, flag in RESOLVED.get(start.engine, {}).items():
        said = start.last(name)
        if said is not None:
            yield flag, str(said.value)


def _version(start: Start, engine: Engine) -> tuple[str | None, list[str]]:
    """The version that is planned: the log's own, else what its lines tell, where modelled.

    A development build without a release (``0.1.dev20073``) is planned as the newest.
    """
    likely = likely_version(start)
    if likely is None:
        return None, []
    oldest, newest = engine.versions
    try:
        parsed = Version.parse(likely.version)
    except BadValue:
        return None, [f"The version {likely.version[:40]!r} is not read: planned as {newest}."]
    if parsed >= Version.parse(oldest):
        return likely.version, [] if likely.stated else [likely.how]
    planned = newest if not parsed.final else oldest
    return planned, [f"{likely.version[:40]} is not modelled: planned as {planned}."]
