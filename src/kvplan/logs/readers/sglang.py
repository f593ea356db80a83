"""SGLang's lines, 0.1 to 0.5.23.

What it prints as "GB" is GiB. A line is one rank's. With a sliding window the first pool of a rank
is the window's and the second the full layers'; with speculation a further weight line and further
pools are the draft's (model_executor/model_runner.py, mem_cache/memory_pool.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kvplan.logs import numbers
from kvplan.logs.facts import Begin, Fact, Flag, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.readers.base import Reader, found, row, rows

MOST_RANKS = 4096

_LOADED = row(
    "Load weight end.(?: elapsed=<weights_load_s:number> s,)?(?: type=<model_class:word>,)?"
    "(?: quant=<weights_format:word>,)?(?: (?:bits|fmt)=[\\w-]{1,20},)?"
    "(?: dtype=<weights_dtype:word>,)? avail mem=<free_after_load_bytes:size>"
    "(?:, mem usage=<weights_bytes:size>)?"
)
_POOL = row(
    r"KV ?Cache is allocated\.(?: \(group_id=[^)]{0,40}\)\.?)?(?: dtype: <kv_cache_dtype:word>,)?"
    " #tokens: <kv_tokens:whole>"
    "(?:, K size: <k_bytes:size>, V size: <v_bytes:size>)?"
    "(?:, (?:KV|Cache) size: <kv_bytes:size>)?"
)
_WINDOW = row(
    "liding window memory pool"
    r"(?: \(all SWA\))?\.(?: full_layer_tokens=<kv_tokens:whole>,)?"
    " swa_layer_tokens=<swa_kv_tokens:whole>"
)
_STATES = row(
    r"Mamba Cache is allocated\.(?: max_mamba_cache_size: <state_slots:whole>,)?"
    " conv_state size: <conv_state_bytes:size>, ssm_state size: <ssm_state_bytes:size>"
    "(?:,? intermediate_ssm_state_cache size: <intermediate_ssm_bytes:size>,?"
    " intermediate_conv_window_cache size: <intermediate_conv_bytes:size>)?"
)
_PROFILED = row(
    "max_total_tokens=<asked_kv_tokens:whole> is larger than the profiled value"
    " <profiled_kv_tokens:whole>"
)
_GRAPH = re.compile(
    r"Capture ([a-z ]{0,40}?) ?(?:cuda|CUDA) graph end\..{0,120}?mem usage=(-?[\d.]{1,16}) GB"
)
_ARGUMENT = re.compile(r"""\b(\w{1,64})=('[^']{0,400}'|"[^"]{0,400}"|[\w.+-]{1,64})""")
_GRAPHS: Final = {"": "cuda", "target decode": "cuda", "decode": "cuda"}
# Settings that ServerArgs prints, resolved, by the flag that asks for them.
_SETTINGS: Final = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "tp_size", "dp_size", "pp_size", "ep_size", "mem_fraction_static", "kv_cache_dtype",
        "page_size", "context_length", "max_total_tokens", "max_running_requests",
        "chunked_prefill_size", "max_prefill_tokens", "cuda_graph_max_bs", "attention_backend",
        "swa_full_tokens_ratio", "mamba_ssm_dtype", "max_mamba_cache_size",
        "mamba_full_memory_ratio", "mamba_scheduler_strategy", "speculative_algorithm",
        "speculative_draft_model_path", "speculative_num_steps", "speculative_eagle_topk",
        "speculative_num_draft_tokens", "quantization", "dtype", "device", "moe_a2a_backend",
        "enable_dp_attention", "disable_cuda_graph", "disable_radix_cache",
        "disable_overlap_schedule", "disable_hybrid_swa_memory", "enable_hierarchical_cache",
        "hicache_ratio", "hicache_size",
    )
}  # fmt: skip
_AS_FACTS: Final = {
    "mem_fraction_static": "mem_fraction_static",
    "tp_size": "tensor_parallel_size",
    "dp_size": "data_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "page_size": "block_size",
}
_UNSET: Final = ("None", "False", "auto", "")


@dataclass(slots=True)
class _Rank:
    """How far a rank has come: what its next line is of."""

    weights: int = 0
    pools: int = 0
    windowed: bool = False
    sized: bool = False
    first: tuple[Line, dict[str, Value]] | None = None  # of its pools, where no line says of what

    def next_pool(self) -> str:
        """The prefix of the next pool's names."""
        self.pools += 1
        kinds = ("swa_", "") if self.windowed else ("",)
        return kinds[self.pools - 1] if self.pools <= len(kinds) else "draft_"


class SglangReader(Reader):
    """The lines of SGLang."""

    engine = "sglang"
    signs = (
        "server_args=", "ServerArgs(", "KV Cache is allocated", "KVCache is allocated",
        "Load weight end", "max_total_num_tokens=", "--mem-fraction-static",
        "SWAKVPool", "Mamba Cache is allocated", "Memory pool end",
    )  # fmt: skip
    marks = (
        "server_args=", "ServerArgs(", "Cache is allocated", "Load weight", "max_total_",
        "mem-fraction-static", "SWAKVPool", "Memory pool", "graph end", "sliding window memory",
        "Sliding window memory", "KV cache dtype", "DSV4 pool", "mamba state cache",
        "out of memory", "graph failed",
    )  # fmt: skip
    rows = (
        *rows(
            "Using KV cache dtype: <kv_cache_dtype:word>",
            "SWAKVPool mem usage: <kv_bytes:size>, swa size: <swa_kv_tokens:whole>,"
            " full size: <kv_tokens:whole>",
            "DSV4 pool sizes: full=<kv_tokens:whole>, swa=<swa_kv_tokens:whole>,"
            " c4=<c4_kv_tokens:whole>, c128=<c128_kv_tokens:whole>,"
            " c4_state=<c4_state_slots:whole>, c128_state=<c128_state_slots:whole>",
            "Memory pool end. avail mem=<free_after_pool_bytes:size>",
            "max_total_num_tokens=<kv_tokens:whole>",
            "chunked_prefill_size=<chunked_prefill_tokens:whole>",
            "max_prefill_tokens=<max_prefill_tokens:whole>",
            "max_running_requests=<max_running_requests:whole>",
            "context_len=<max_model_len:whole>",
            "available_gpu_mem=<free_gpu_bytes:size>",
            "max_running_requests is capped to <max_running_requests:whole>"
            r" by the mamba state cache \(max_mamba_cache_size=<state_slots:whole>,"
            r" <state_slots_per_request:whole> state slots per request\)",
        ),
        row("Not enough memory. Please try to increase --mem-fraction-static", "no_cache_memory"),
        row(
            "Loaded weights leave no GPU memory for the KV cache under"
            " --mem-fraction-static=<mem_fraction_static:number>",
            "no_cache_memory",
        ),
        row("Capture cuda graph failed: <what:quoted>", "cuda_graph_failed"),
        row(
            "CUDA out of memory. Tried to allocate <requested_bytes:size>"
            "(?:. GPU \\d{1,3} has a total capacity of <total_gpu_bytes:size>"
            " of which <free_gpu_bytes:size> is free)?",
            "out_of_memory",
        ),
    )

    def __init__(self) -> None:
        self._ranks: dict[str | None, _Rank] = {}

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says of its rank."""
        text = line.text
        if "ServerArgs(" in text:
            yield from self._started(line)
            return
        rank = self._rank(line.rank)
        if "Load weight begin" in text:
            yield from self._loading(line, rank)
        elif (figures := _LOADED.match(text)) is not None:
            yield from found(line, _loaded(rank, figures))
        elif (figures := _POOL.match(text)) is not None:
            yield from _pool(rank, line, figures)
        elif (figures := _WINDOW.match(text)) is not None:
            rank.windowed = True
            yield from found(line, figures)
        elif (figures := _STATES.match(text)) is not None:
            yield from found(line, _states(figures))
        elif (figures := _PROFILED.match(text)) is not None:
            yield from found(line, figures, _nothing_left(figures))
        elif "graph end" in text:
            yield from _graphs(line)
        else:
            rank.sized = rank.sized or "max_total_num_tokens=" in text
            yield from super().read(line)

    def _rank(self, name: str | None) -> _Rank:
        if name not in self._ranks and len(self._ranks) >= MOST_RANKS:
            return _Rank()
        return self._ranks.setdefault(name, _Rank())

    def _started(self, line: Line) -> Iterator[Found]:
        """The settings that a start prints before all else."""
        self._ranks.clear()
        yield Begin()
        said = {name: _value(text) for name, text in _ARGUMENT.findall(line.text)}
        for name, flag in _SETTINGS.items():
            if str(said.get(name)) not in _UNSET:
                yield Flag(flag, said[name])
        if isinstance(model := said.get("model_path"), str):
            yield Fact("model", model, line.number)
        for name, fact in _AS_FACTS.items():
            if isinstance(value := said.get(name), int | float):
                yield Fact(fact, value, line.number)

    def _loading(self, line: Line, rank: _Rank) -> Iterator[Found]:
        """Weights begin to load: a new start where the rank's pools were sized already."""
        if rank.sized:
            self._ranks.clear()
            self._rank(line.rank)
            yield Begin()
        elif not rank.weights and (at := re.search(r"avail mem=(-?[\d.]{1,16} GB)", line.text)):
            yield from found(line, {"free_before_load_bytes": numbers.size(at[1]) or 0})


def _loaded(rank: _Rank, figures: dict[str, Value]) -> dict[str, Value]:
    """The target's weights, then the draft's."""
    rank.weights += 1
    return figures if rank.weights == 1 else _named("draft_", figures)


def _pool(rank: _Rank, line: Line, figures: dict[str, Value]) -> Iterator[Found]:
    """A pool by its place; what kvcached prints is address space, not memory."""
    k, v = figures.get("k_bytes"), figures.get("v_bytes")
    if isinstance(k, int) and isinstance(v, int):
        figures["kv_bytes"] = k + v
    if "Virtual" in line.text.partition("Cache is allocated")[0]:
        yield from found(line, _named("virtual_", figures))
        return
    prefix, first = rank.next_pool(), rank.first
    if prefix == "draft_" and first is not None and rank.weights < 2 and _longer(figures, first[1]):
        yield from found(first[0], _named("swa_", first[1]))
        prefix, rank.first = "", None
    elif rank.pools == 1 and not rank.windowed:
        rank.first = line, dict(figures)
    yield from found(line, _named(prefix, figures))


def _longer(figures: dict[str, Value], first: dict[str, Value]) -> bool:
    """Whether a pool has more tokens than the first: a draft's has as many, a window's is first."""
    tokens, before = figures.get("kv_tokens"), first.get("kv_tokens")
    return isinstance(tokens, int) and isinstance(before, int) and tokens > before


def _states(figures: dict[str, Value]) -> dict[str, Value]:
    sizes = [value for name, value in figures.items() if name.endswith("_bytes")]
    total = sum(value for value in sizes if isinstance(value, int))
    return {**figures, "recurrent_state_bytes": total}


def _nothing_left(figures: dict[str, Value]) -> str:
    profiled = figures.get("profiled_kv_tokens")
    return "no_cache_memory" if isinstance(profiled, int) and profiled <= 0 else ""


def _graphs(line: Line) -> Iterator[Found]:
    """Graphs of decode are ``cuda_graph_bytes``; those of other steps have their step's name."""
    match = _GRAPH.search(line.text)
    size = numbers.size(f"{match[2]} GB") if match else None
    if match and size is not None:
        words = match[1].strip()
        step = _GRAPHS.get(words) or words.removeprefix("target ").replace(" ", "_")
        yield from found(line, {f"{step}_graph_bytes": size})


def _named(prefix: str, figures: dict[str, Value]) -> dict[str, Value]:
    return {f"{prefix}{name}": value for name, value in figures.items()} if prefix else figures


def _value(text: str) -> Any:
    """A setting as Python prints it: a text, a number, True, or its word."""
    if text[0] in "'\"":
        return text[1:-1]
    if text == "True":
        return True
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
