"""Ollama's lines of its three engines.

    to 2025   msg="offload to cuda" … memory.required.kv="9.5 GiB"       an estimate of Ollama's own
    2025–26   msg="kv cache" device=CUDA0 size="1.5 GiB"                 what its engine measured
    0.30 on   starting llama-server, then llama.cpp's lines

An estimate is named so: the allocation is what llama.cpp's line says. The engine repeats its lines
for every layout that it tries (operations fit and alloc); those of ``commit`` are what stays. The
size that Ollama shows leaves out buffers that are repeated on a device, which llama.cpp's own lines
have (llm/memory.go 0.5 to 0.12, llm/server.go and ml/device.go 0.11 to 0.29, llm/llama_server.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from kvplan.logs import numbers
from kvplan.logs.facts import LONGEST_TEXT, Fact, Failure, Flag, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.readers.base import Row, found, row
from kvplan.logs.readers.llamacpp.reader import MOST_DEVICES, LlamaReader

_VERSION = re.compile(r"\(version (\d[\w.+-]{0,40})\)")
_PAIR = re.compile(r"""\b([a-z]{1,20}(?:[._][a-z]{1,20}){0,3})=("[^"]{0,400}"|[^\s"]{1,100})""")
_AVAILABLE = re.compile(r"[\d.]{1,12} [KMGT]?i?B")
_REQUEST = re.compile(
    r"Operation:(\w{1,12}).{0,400}?Parallel:(\d{1,6}) BatchSize:(\d{1,9}) FlashAttention:(\w{0,12})"
    r" KvSize:(\d{1,12}) KvCacheType:(\w{0,12})(?:.{0,200}?GPULayers:(\d{1,6})\[)?"
)
_OPTION = re.compile(r"(?:^|[\s\"])--([a-z-]{2,40})[ =](\S{1,60})")
_WEIGHTS = re.compile(
    r'msg="(model weights|kv cache|compute graph)"(?: buffer| device| backend)=(\S{1,60})'
    r'(?: buffer_type=\S{1,60})? size="([\d.]{1,12} [KMGT]?i?B)"'
)
# A card of the machine, told before anything is loaded (types.go, gpu.go until 0.13).
_CARD = re.compile(
    r'msg="inference compute" .{0,300}?name="([^"]{2,80})" total="([\d.]{1,12} [KMGT]?i?B)"'
)
_TOTAL = row('msg="total memory" size="<reported_total_bytes:size>"')
_TOO_LARGE = row(
    r"model requires more system memory \(<needed_bytes:size>\) than is available"
    r" \(<free_host_bytes:size>\)",
    "weights_exceed_memory",
)

ESTIMATES: Final = {
    "memory.required.full": "estimated_total_bytes",
    "memory.required.partial": "estimated_gpu_bytes",
    "memory.required.kv": "estimated_kv_bytes",
    "memory.weights.total": "estimated_weights_bytes",
    "memory.weights.repeating": "estimated_repeating_weights_bytes",
    "memory.weights.nonrepeating": "estimated_nonrepeating_weights_bytes",
    "memory.graph.full": "estimated_graph_bytes",
    "memory.graph.partial": "estimated_partial_graph_bytes",
    "memory.gpu_overhead": "gpu_overhead_bytes",
    "projector.weights": "estimated_projector_bytes",
    "projector.graph": "estimated_projector_graph_bytes",
}
_LAYERS: Final = {"layers.model": "offloadable_layers", "layers.offload": "gpu_layers"}
_MEASURED: Final = {
    "model weights": "model_buffer_bytes",
    "kv cache": "kv_buffer_bytes",
    "compute graph": "compute_buffer_bytes",
}


class OllamaReader(LlamaReader):
    """The lines of Ollama, and llama.cpp's where it runs that."""

    engine: ClassVar[str] = "ollama"
    supersedes: ClassVar[tuple[str, ...]] = ("llama.cpp", "ik_llama.cpp")
    signs: ClassVar[tuple[str, ...]] = (
        "source=server.go", "source=memory.go", "source=sched.go", "source=device.go",
        "source=runner.go", "source=ggml.go", "source=routes.go", "source=backend.go",
        "source=llama_server.go", "source=types.go", "offload to ", "memory.required.kv",
        "ollama runner",
    )  # fmt: skip
    marks: ClassVar[tuple[str, ...]] = (
        *LlamaReader.marks, "memory.required", "msg=load", "GiB", "starting ", "(version ",
        "system memory", "runner process has terminated",
    )  # fmt: skip
    rows: ClassVar[tuple[Row, ...]] = LlamaReader.rows

    def __init__(self) -> None:
        super().__init__()
        self._release: str | None = None
        self._operation = ""
        self._running = self._begun = self._untold = False
        self._cards: list[tuple[Line, str, int | None]] = []

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says of a model's load."""
        text = line.text
        if (release := _VERSION.search(text)) is not None and "istening" in text:
            self._release, self._cards = release[1], []
        elif (card := _CARD.search(text)) is not None:
            self._untold = True
            if len(self._cards) < MOST_DEVICES:
                self._cards.append((line, card[1], numbers.size(card[2])))
        elif "memory.required" in text:
            yield from self._estimate(line)
        elif (asked := _REQUEST.search(text)) is not None:
            yield from self._request(line, asked)
        elif 'msg="starting ' in text and "cmd=" in text:
            yield from self._command(line)
        elif (measured := _WEIGHTS.search(text)) is not None:
            if self._operation in ("", "commit"):
                name, size = _MEASURED[measured[1]], numbers.size(measured[3]) or 0
                yield Fact(name, size, line.number, measured[2], text[:LONGEST_TEXT])
        elif (figures := _TOTAL.match(text)) is not None:
            if self._operation in ("", "commit"):
                yield from found(line, figures)
        elif (figures := _TOO_LARGE.match(text)) is not None:
            yield from found(line, figures, _TOO_LARGE.failure)
        elif "runner process has terminated" in text and "out of memory" in text:
            code = "out_of_memory"
            yield Failure(code, line.number, line.rank, text[:LONGEST_TEXT], self._refused)
        else:
            for one in super().read(line):
                yield one
                if self._untold:
                    yield from self._told()

    def _version(self, build: str) -> str:
        """The release: the build is of the llama.cpp inside."""
        return self._release or ""

    def _begin(self, version: str | None) -> Iterator[Found]:
        """llama.cpp's own beginnings are within a load, unless one has allocated already."""
        if self._loaded or not self._begun:
            yield from self._start()

    def _next(self) -> Iterator[Found]:
        """A new load begins with this line where the last one has run."""
        if self._running or not self._begun:
            yield from self._start()

    def _start(self) -> Iterator[Found]:
        self._begun, self._running, self._fresh = True, False, False
        yield from super()._begin(self._release)
        yield from self._told()

    def _told(self) -> Iterator[Found]:
        """The machine's cards, once in each start."""
        self._untold = False
        for place, (line, name, total) in enumerate(self._cards):
            rank, text = f"CUDA{place}", line.text[:LONGEST_TEXT]
            yield Fact("gpu", name, line.number, rank, text)
            if total is not None:
                yield Fact("total_gpu_bytes", total, line.number, rank, text)

    def _estimate(self, line: Line) -> Iterator[Found]:
        """What Ollama expects before it loads."""
        yield from self._next()
        pairs: list[tuple[str, str]] = _PAIR.findall(line.text)
        said = {name: text.strip('"') for name, text in pairs}
        figures: dict[str, Value] = {}
        for key, name in ESTIMATES.items():
            if (size := numbers.size(said.get(key, ""))) is not None:
                figures[name] = size
        for key, name in _LAYERS.items():
            if (count := numbers.whole(said.get(key, ""))) is not None:
                figures[name] = count
        yield from found(line, figures)
        sizes = _AVAILABLE.findall(said.get("memory.available", ""))
        for place, size in enumerate(sizes[:64]):
            free = numbers.size(size) or 0
            yield Fact("free_gpu_bytes", free, line.number, f"GPU{place}", line.text[:LONGEST_TEXT])

    def _request(self, line: Line, asked: re.Match[str]) -> Iterator[Found]:
        """An operation of Ollama's engine; after ``commit`` the load is done."""
        if self._operation == "commit" and asked[1] != "close":
            self._running = True
        if asked[1] != "close":
            yield from self._next()
        self._operation = asked[1]
        if asked[1] != "commit":
            return
        slots, cells = int(asked[2]), int(asked[5])
        figures: dict[str, Value] = {
            "kv_cells": cells, "kv_sequences": slots, "batch_tokens": int(asked[3]),
            "flash_attention": asked[4], "max_model_len": cells // max(1, slots),
        }  # fmt: skip
        if asked[6]:
            figures["k_type"] = figures["v_type"] = asked[6]
        if asked[7]:
            figures["gpu_layers"] = int(asked[7])
        yield from found(line, figures)
        yield from _flags(cells, slots, int(asked[3]), asked[6])

    def _command(self, line: Line) -> Iterator[Found]:
        """The command of a runner or of llama-server."""
        yield from self._next()
        self._running = True
        said: dict[str, str] = dict(_OPTION.findall(line.text))
        cells, slots = (int(v) if v.isdecimal() and len(v) < 13 else 0
                        for v in (said.get("ctx-size", ""), said.get("parallel", "1")))  # fmt: skip
        batch = said.get("batch-size", "")
        if cells:
            figures = {"context_tokens": cells, "max_model_len": cells // max(1, slots)}
            yield from found(line, {**figures, "kv_sequences": slots})
            kind = said.get("kv-cache-type", said.get("cache-type-k", "")).strip('"')
            yield from _flags(cells, slots, int(batch) if batch.isdecimal() else 0, kind)

    def _flags(self, figures: dict[str, Value]) -> Iterator[Found]:
        """llama.cpp's settings are Ollama's own, which its flags do not name."""
        return iter(())

    def _types(self, figures: dict[str, Value]) -> Iterator[Found]:
        kind = figures.get("k_type")
        if kind in ("q8_0", "q4_0") and not self._context:
            yield Flag("--OLLAMA_KV_CACHE_TYPE", kind)


def _flags(cells: int, slots: int, batch: int, kind: str) -> Iterator[Flag]:
    """Ollama's own settings of what it asks its runner for: its context is one slot's."""
    yield Flag("--num_ctx", cells // max(1, slots))
    yield Flag("--OLLAMA_NUM_PARALLEL", max(1, slots))
    if batch:
        yield Flag("--num_batch", batch)
    if kind:
        yield Flag("--OLLAMA_KV_CACHE_TYPE", kind)
