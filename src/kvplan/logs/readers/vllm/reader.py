"""vLLM's lines to facts, 0.2 to 0.32: where a start begins, its settings, its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kvplan.logs.facts import LONGEST_TEXT, Begin, Fact, Failure, Flag, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.numbers import decimal, whole
from kvplan.logs.readers.base import Reader, found
from kvplan.logs.readers.vllm import rows
from kvplan.logs.readers.vllm.command_line import command_settings
from kvplan.logs.readers.vllm.settings import settings

_SERVER = re.compile(
    r"vLLM API server version v?([\w.+-]{1,60})|[█▀▄▌▐]\s{1,8}version v?([\w.+-]{1,60})"
)
_BANNER_MODEL = re.compile(r"[█▀▄▌▐]\s{1,8}model {1,8}(\S{1,200})")
_ENGINE = re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v?([\w.+-]{1,60})\) with config: ")
_ARGUMENTS = ("non-default args: ", "args: Namespace")
# Blocks that an engine allocates for a trial while it measures its graphs (0.19 on).
TRIAL_BLOCKS = 512

# Figures whose place in kv_cache_utils.py tells the release, by the fact that it is.
PRINTED_BY = {"kv_tokens": "kv_cache_utils_line", "max_concurrency": "kv_cache_utils_next_line"}

_WHOLE = frozenset({
    "max_model_len", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
    "max_num_seqs", "max_num_batched_tokens", "block_size",
    "decode_context_parallel_size", "prefill_context_parallel_size",
})  # fmt: skip
_SHARES = frozenset({"gpu_memory_utilization"})
_WORDS = frozenset({"model", "dtype", "quantization", "kv_cache_dtype"})
_OF_A_RUN = frozenset({
    "weights_bytes", "available_kv_bytes", "kv_tokens", "num_gpu_blocks", "total_gpu_bytes",
})  # fmt: skip
_SWITCHES = frozenset({
    "enforce_eager", "enable_prefix_caching", "enable_expert_parallel", "enable_lora",
    "enable_chunked_prefill", "disable_hybrid_kv_cache_manager",
})  # fmt: skip


class VllmReader(Reader):
    """The lines of vLLM; a start is its API server's version line, else its engine's config."""

    engine = "vllm"
    signs = (
        "vLLM API server version",
        "(EngineCore",
        "LLM engine (v",
        "GPU KV cache size",
        "# GPU blocks:",
        "Maximum concurrency for",
    )
    marks = (
        "default args: ", "args: Namespace", "GiB", "model weights", "PU blocks: ", "gpu_blocks",
        "KV cache size", "KV cache manager", "KV cache memory", "cache blocks", "max_model_len",
        "max model len", "max_num_", "store kv", "DeepSeek's", "FP8 indexer", "capturing finished",
        "CUDA graph memory", "init engine", "world_size", "Encoder cache", "block size",
        "mamba page", "Mamba cache", "max seq len", "Tried to allocate", "device_name=",
        "ttention backend", "XFormers", "BackendEnum", "kv_cache_dtype=torch", "█",
        "failed to start", "initialization failed", "startup complete", "warming up",
        '.py", line ', "vllm serve", "-m vllm.entrypoints",
    )  # fmt: skip
    openings = ("max seq len (", "Free memory on device", "vllm serve", "vllm.entrypoints")
    rows = rows.ALL

    def __init__(self) -> None:
        self._engines: set[str | None] = set()  # the ranks whose config line was seen
        self._printed = False  # its arguments, which go before a command beside the log
        self._running = False  # past the settings, so that the next version line is a new start

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says of the start it belongs to."""
        yield from self._begins(line)
        yield from self._settings(line)
        for said in self._said(line):
            if isinstance(said, Failure):
                self._running = True
            elif isinstance(said, Fact):
                if said.name == "num_gpu_blocks_override" and said.value == TRIAL_BLOCKS:
                    continue
                self._running = self._running or said.name in _OF_A_RUN
                yield from _printed_by(line, said)
            yield said

    def _said(self, line: Line) -> Iterator[Found]:
        """What the rows read of a line; of a cut one joined as a forum cuts, else as a terminal."""
        for glue in (" ", "") if line.after else ():
            joined = replace(line, text=glue.join((line.text, *line.after)))
            for wording in rows.CUT:
                figures = wording.match(joined.text)
                if figures is not None:
                    yield from found(joined, figures, wording.failure)
                    return
        yield from super().read(line)

    def _begins(self, line: Line) -> Iterator[Found]:
        server = _SERVER.search(line.text)
        if server is not None:
            version = server[1] or server[2]
            # Further API servers of the same start say it too.
            if self._running or (self._engines and "ApiServer_" not in line.raw):
                yield self._new()
            yield Fact("version", version, line.number, line.rank, line.text[:LONGEST_TEXT])
        engine = _ENGINE.search(line.text)
        if engine is not None:
            if line.rank in self._engines:
                yield self._new()
            self._engines.add(line.rank)
            yield Fact("version", engine[1], line.number, line.rank, line.text[:LONGEST_TEXT])

    def _new(self) -> Begin:
        self._engines.clear()
        self._printed = self._running = False
        return Begin()

    def _settings(self, line: Line) -> Iterator[Found]:
        """The settings that a line prints, else those of a command that is pasted."""
        printed = [*_settings_of(line)]
        self._printed = self._printed or any(isinstance(found, Flag) for found in printed)
        yield from printed
        if not self._printed:
            for name, value in command_settings(line.text, line.after):
                yield from _given(line, name, value)


def _printed_by(line: Line, said: Fact) -> Iterator[Fact]:
    """The lines of the source that printed the pool: each release has others."""
    file, _, number = line.where.partition(":")
    name = PRINTED_BY.get(said.name)
    if name is not None and file == "kv_cache_utils.py":
        yield Fact(name, int(number), line.number, line.rank)


def _settings_of(line: Line) -> Iterator[Found]:
    """The settings of a line that prints them; those that are given are flags too."""
    banner = _BANNER_MODEL.search(line.text)
    if banner is not None:
        yield Fact("model", banner[1], line.number, line.rank, line.text[:LONGEST_TEXT])
    for opening in _ARGUMENTS:
        place = line.text.find(opening)
        if place >= 0:
            for name, value in settings(line.text[place + len(opening) :]):
                yield from _given(line, name, value)
            return
    engine = _ENGINE.search(line.text)
    if engine is not None:
        for name, value in settings(line.text[engine.end() :]):
            yield from _fact(line, name, value)


def _given(line: Line, name: str, value: str) -> Iterator[Found]:
    """A setting that was given: a flag, and a fact where it is one."""
    yield Flag(f"--{name.replace('_', '-')}", value)
    yield from _fact(line, name, value)


def _fact(line: Line, name: str, text: str) -> Iterator[Fact]:
    """A setting as a fact, where it is one that decides about memory."""
    value: Value | None = None
    if name in _WORDS:
        value = text
    elif name in _WHOLE:
        value = whole(text) if text.lstrip("-").isdecimal() else None
    elif name in _SHARES:
        value = decimal(text)
    elif name in _SWITCHES and text in ("True", "False"):
        value = text == "True"
    if value is not None:
        yield Fact(name, value, line.number, line.rank, line.text[:LONGEST_TEXT])
