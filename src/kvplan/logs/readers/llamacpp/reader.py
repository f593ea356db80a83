"""llama.cpp's lines to facts: llama-server, llama-cli and what is built on the library.

A context's caches follow each other, and a draft's context follows the target's: what a line is of
is told by those before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kvplan.logs import numbers
from kvplan.logs.facts import LONGEST_TEXT, Begin, Fact, Failure, Flag, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.readers.base import Reader, Row, found
from kvplan.logs.readers.llamacpp import buffers, caches
from kvplan.logs.readers.llamacpp.wording import (
    BUFFERS,
    ERRORS,
    FLAGS,
    MODEL,
    PROJECTIONS,
    RETRIED,
    SETTINGS,
)

MOST_DEVICES: Final = 1024
_BUILD = re.compile(
    r"(?:\bbuild(?: =|:| {1,9}:)? |build_info: )b?(\d{1,9})"
    r"(?:[ -]\(?[0-9a-f]{5,40}|-unknown| \()"
)
_FILE_TYPE = re.compile(r"(?:file type|model ftype) {1,9}= (.{1,60})")
_REFUSED = re.compile(
    r"allocating (?P<size>[\d.,]{1,24}|[\d.]{1,20}xx) MiB on device (?P<device>\d{1,3}): "
    r"|failed to allocate buffer, size = {1,9}(?P<of_metal>[\d.]{1,24}) MiB"
)
_ENCODING = re.compile(r"processing image\.\.\.|encoding (?:image|mtmd) slice")
_ENCODED = re.compile(r"image(?: slice)? (?:processed|encoded|decoded) ")
_LIMIT: Final = "exceeds device memory allocation limit"
_OF_SIZE = re.compile(r"failed to allocate (\S{1,40}) buffer of size (\d{1,20})")
_VARIANTS: Final = {"Small": "S", "Medium": "M", "Large": "L"}
# Printed names that are not the type's own with its variant (llama_model_ftype_name, b4743).
_OTHERWISE: Final = {"Q2_K_M": "Q2_K", "IQ3_S mix": "IQ3_M"}
_SWITCHES: Final = {"0": "off", "1": "on", "enabled": "on", "disabled": "off", "auto": "auto"}
_SIZES: Final = ("MiB", "breakdown_print", "compute capability")
_DRAFT: Final = ("loading draft model", "creating MTP draft context", "draft context against")
_APPLICATIONS: Final = {
    "LM STUDIO": "LM Studio",
    ".lmstudio": "LM Studio",
    "LMSInternal": "LM Studio",
}


class LlamaReader(Reader):
    """The lines of llama.cpp."""

    engine: ClassVar[str] = "llama.cpp"
    signs: ClassVar[tuple[str, ...]] = (
        "llama_model_loader:", "llama_kv_cache", "llama_context:", "llm_load_", "load_tensors:",
        "llama_new_context_with_model:", "llama_init_from_model:", "llama_memory_",
        "sched_reserve:", "common_params_fit_impl:", "memory_breakdown_print:", "print_info:",
        "ggml_backend_cuda_buffer_type_alloc_buffer", "llama_model_load", "llama_init_from_gpt",
        "[LM STUDIO", "KV self size",
    )  # fmt: skip
    marks: ClassVar[tuple[str, ...]] = (
        "MiB", "llama_", "llm_load_print_meta", "print_info", "build", "layers to GPU",
        "ocate", "draft", "KV cache", "V cache", "compute capability", "general.name", "arch",
        "n_ctx_slot", "LM STUDIO", "model size", "flash_a", "breakdown", "OUT_OF_DEVICE_MEMORY",
        "ing image", "image processed", "slots are idle", "allocation limit",
    )  # fmt: skip
    rows: ClassVar[tuple[Row, ...]] = (*MODEL, *SETTINGS, *PROJECTIONS)

    def __init__(self) -> None:
        self._kind = ""
        self._context = ""
        self._loaded = False
        self._weights: dict[str, int] = defaultdict(int)
        self._refused: dict[str, Value] = {}
        self._pending: Failure | None = None
        self._fresh, self._build = False, ""
        self._encoding = False

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says of the model, a context or a device."""
        text = line.text
        if "llama_model_loader: loaded meta data" in text:
            yield from self._loader(line)
        elif (build := _BUILD.search(text)) is not None:
            yield from self._begin(None if build[1] == "0" else self._version(build[1]))
        elif any(word in text for word in _DRAFT):
            self._context, self._loaded = "draft_", False
        elif (announced := caches.CREATING.search(text)) is not None:
            self._kind = caches.KINDS.get(announced[1].strip(), "")
        elif any(word in text for word in _SIZES):
            yield from self._sizes(line)
        else:
            yield from self._words(line)

    def _version(self, build: str) -> str:
        """A build's name."""
        return f"b{build}"

    def _loader(self, line: Line) -> Iterator[Found]:
        """A model's file; a start begins where one was loaded before it and this is no draft's."""
        if self._loaded:
            yield from self._begin(None)
        self._weights.clear()
        for sign, name in _APPLICATIONS.items():
            if sign in line.text:
                yield Fact("host_application", name, line.number)

    def _begin(self, version: str | None) -> Iterator[Found]:
        """A new start; the build's line may come twice before anything is said."""
        yield from self.finish()
        self._context = self._kind = ""
        self._loaded = False
        self._weights.clear()
        self._refused = {}
        if not self._fresh or version not in (None, self._build):
            self._fresh, self._build = True, version or ""
            yield Begin(version)

    def _sizes(self, line: Line) -> Iterator[Found]:
        """Caches, buffers, devices, and what they refused."""
        self._fresh = False
        text = line.text
        if (figures := caches.cache(text, self._kind)) is not None:
            self._kind = "" if self._kind == "swa_" else self._kind
            self._loaded = True
            yield from self._figures(line, figures)
            yield from self._types(figures)
        elif (of := buffers.buffer(text)) is not None:
            yield from self._buffer(line, of)
        elif (of := buffers.device(text) or buffers.breakdown(text)) is not None:
            yield from _of_device(line, of.device, of.figures)
        elif (refused := _REFUSED.search(text)) is not None:
            yield from self._refuse(line, refused)
        else:
            yield from self._words(line)

    def _buffer(self, line: Line, of: buffers.OfDevice) -> Iterator[Found]:
        """A buffer; the weights of one device may lie in several, of one file each."""
        (name, size), *_ = of.figures.items()
        if name == "model_buffer_bytes" and len(self._weights) < MOST_DEVICES:
            self._weights[of.device] += int(size)
            size = self._weights[of.device]
        elif name == "kv_buffer_bytes":
            name = f"{self._kind}{name}"
        if name == "compute_buffer_bytes":
            self._loaded = True
        yield from _of_device(line, of.device, {f"{self._context}{name}": size})

    def _refuse(self, line: Line, refused: re.Match[str]) -> Iterator[Found]:
        """An allocation that failed: what it was for is said by a later line."""
        yield from self.finish()
        self._refused = {"device": f"CUDA{refused['device']}" if refused["device"] else "Metal"}
        said = refused["size"] or refused["of_metal"]
        size = numbers.size(f"{said.removesuffix('xx')} MiB")
        if size is not None:
            self._refused["requested_bytes"] = size
        if self._encoding:
            self._refused["encoding_image"] = True
        self._pending = _failure("out_of_memory", line, self._refused)

    def finish(self) -> Iterator[Found]:
        """An allocation that failed, where no line said what it was for."""
        if self._pending is not None:
            yield self._pending
        self._pending = None

    def _words(self, line: Line) -> Iterator[Found]:
        """Settings, and errors with what was refused before them."""
        text = line.text
        if (of := _OF_SIZE.search(text)) is not None:
            limit = {"allocation_limit": True} if self._refused.get("allocation_limit") else {}
            self._refused = {"device": of[1], "requested_bytes": int(of[2]), **limit}
            return
        if _LIMIT in text:
            self._refused = {"allocation_limit": True}
        for error in ERRORS:
            if (figures := error.match(text)) is not None:
                yield from self._fail(_failure(error.failure, line, self._refused or figures))
                return
        yield from self._notes(line)
        if (kind := _FILE_TYPE.search(text)) is not None and not self._context:
            yield from _file_type(line, kind[1])
        for wording in self.rows:
            if (figures := wording.match(text)) is not None:
                yield from self._figures(line, figures)
                yield from self._flags(figures)

    def _fail(self, failure: Failure) -> Iterator[Found]:
        """An error; a buffer of the graph may yet be asked for once more."""
        self._pending = failure if failure.code == BUFFERS else None
        if self._pending is None:
            yield failure

    def _notes(self, line: Line) -> Iterator[Found]:
        """What a line says without a figure."""
        text = line.text
        if RETRIED in text:
            self._pending, self._refused = None, {}
            yield Fact("pipeline_retry", True, line.number)
        if _ENCODING.search(text) or _ENCODED.search(text):
            self._encoding = _ENCODED.search(text) is None
        if "all slots are idle" in text:  # tools/server, b4743 and later: it answers from here on
            yield Fact("serving", True, line.number)
        if "full-size SWA cache" in text:
            yield Flag("--swa-full", True)
        if "LM STUDIO" in text:
            yield Fact("host_application", "LM Studio", line.number)

    def _figures(self, line: Line, figures: dict[str, Value]) -> Iterator[Found]:
        """Facts of the context that is being made."""
        yield from found(line, {f"{self._context}{name}": v for name, v in figures.items()})

    def _types(self, figures: dict[str, Value]) -> Iterator[Found]:
        for name in ("k_type", "v_type"):
            if not self._context and (kind := figures.get(name)):
                yield Flag(FLAGS[name], kind)

    def _flags(self, figures: dict[str, Value]) -> Iterator[Found]:
        """The flags that ask for a target context's settings."""
        if self._context:
            return
        for name, value in figures.items():
            if name == "kv_unified":
                yield Flag("--kv-unified" if value == "true" else "--no-kv-unified", True)
            elif name in FLAGS and (asked := _asked(name, value)) is not None:
                yield Flag(FLAGS[name], asked)


class IkReader(LlamaReader):
    """The lines of ik_llama.cpp: those of llama.cpp to early 2025, and its own."""

    engine: ClassVar[str] = "ik_llama.cpp"
    supersedes: ClassVar[tuple[str, ...]] = ("llama.cpp",)
    signs: ClassVar[tuple[str, ...]] = (
        "c^KV", "kv^T", "mla_attn", "fused_moe", "attn_max_b", "ik_llama", "fused_up_gate", "ser  ",
    )  # fmt: skip

    def _version(self, build: str) -> str:
        return build


def file_type(words: str) -> str:
    """``Q4_K_M`` of ``Q4_K - Medium``, ``IQ4_XS`` of ``IQ4_XS - 4.25 bpw``; empty of none."""
    name, _, rest = words.strip().removesuffix("(guessed)").strip().partition(" - ")
    name = name.removeprefix("all ").removeprefix("mostly ")
    if not name.strip() or name.startswith("unknown"):
        return ""
    variant = _VARIANTS.get(rest.split()[0]) if rest.strip() else None
    name = name if variant is None else f"{name}_{variant}"
    return _OTHERWISE.get(name) or name.split()[0]


def _file_type(line: Line, words: str) -> Iterator[Found]:
    """The type of the file, where its name is one."""
    if kind := file_type(words):
        yield Fact("file_type", kind, line.number)
        yield Flag("--quantization", kind)


def _asked(name: str, value: Value) -> Any:
    if name == "flash_attention":
        return _SWITCHES.get(str(value))
    return value if name not in ("latent_form", "attention_batch_mib") or value else None


def _of_device(line: Line, device: str, figures: dict[str, Value]) -> Iterator[Fact]:
    for name, value in figures.items():
        yield Fact(name, value, line.number, device, line.text[:LONGEST_TEXT])


def _failure(code: str, line: Line, numbers: dict[str, Value]) -> Failure:
    return Failure(code, line.number, line.rank, line.text[:LONGEST_TEXT], dict(numbers))
