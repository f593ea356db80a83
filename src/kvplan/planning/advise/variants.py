"""The checkpoints of a model that may be served: itself, its published quantised copies, and where
that is allowed a quantisation that the engine makes on loading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from kvplan.core.errors import KvplanError
from kvplan.core.model import Model
from kvplan.engines.names import LAYERED
from kvplan.planning.support import weights_format
from kvplan.readers import catalogue
from kvplan.readers.open_model import open_model

# What a copy's name says besides the model's.
COPIED: Final = re.compile(
    r"[-_](fp8([-_]?(dynamic|block|static|per[-_]?tensor|kv))*|nvfp4|mxfp4|awq|gptq|w4a16|w8a8|"
    r"int4|int8|4bit|quantized\.w\d+a\d+|autoround)(?=$|[-_])",
    re.IGNORECASE,
)
# What it says of the training: a date of release among them.
TRAINED: Final = re.compile(
    r"instruct|thinking|chat|base|it|coder|code|math|reasoning|distill|\d{4}", re.ASCII
)
NEAR: Final = 0.1  # of the parameters
# Made on loading, by engine (vLLM: --quantization fp8; SGLang: the same); llama.cpp serves files
# that llama-quantize makes.
ON_LOADING: Final = {"vllm": ("fp8",), "sglang": ("fp8",), "tensorrt-llm": ("fp8",),
                     "llama.cpp": ("Q8_0", "Q4_K_M")}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A checkpoint: the model as it is served, how its weights are stored, flags that it needs.

    ``made`` says that the engine or a tool quantises it: no such checkpoint is known.
    """

    model: Model
    stored: str
    flags: dict[str, Any] = field(default_factory=dict)
    made: bool = False


def variants(model: Model, engine: str, *, quantise: bool) -> Iterator[Variant]:
    """The model itself, then its copies, one for each way to store."""
    own = weights_format(model)
    yield Variant(model=model, stored=own)
    seen = {own}
    if engine not in LAYERED:
        for copy in copies(model):
            if copy.stored not in seen:
                seen.add(copy.stored)
                yield copy
    if not quantise or own != "16 bits":
        return
    for word in ON_LOADING.get(engine, ()):
        if word.lower() not in seen:
            yield Variant(
                model=model,
                stored=word.lower(),
                flags={"--quantization": word},
                made=True,
            )


@cache
def _names() -> tuple[tuple[str, str, str], ...]:
    """Names of copies in the catalogue: the name, the same without a copy's words, and the model
    whose shapes answer for it.
    """
    own = ((entry.id, entry.id) for entry in catalogue.entries())
    others = ((name, entry.id) for name, entry in catalogue.answered())
    found = [(name, _base(name), of) for name, of in (*own, *others) if COPIED.search(name)]
    return tuple(dict.fromkeys(found))


def _base(name: str) -> str:
    """A name without its owner and what says how a copy is stored."""
    return catalogue.fold(COPIED.sub("", name.rpartition("/")[2]))


def _training(name: str) -> frozenset[str]:
    """The words of a name that say what was trained, not how it is stored."""
    words = re.split(r"[^a-z0-9]+", COPIED.sub("", name.rpartition("/")[2]).lower())
    return frozenset(filter(TRAINED.fullmatch, words))


def copies(model: Model) -> Iterator[Variant]:
    """Published copies in the catalogue: the same name but for the format, and the same layers.

    A name that says another training (``-Instruct``, ``-Thinking-2507``) is another model, whatever
    its shapes.
    """
    asked, trained = _base(model.name), _training(model.name)
    for name, base, of in _names():
        if name == model.name or not (base == asked or of == model.name):
            continue
        if _training(name) != trained:
            continue
        try:
            found = open_model(name, offline=True)
        except KvplanError:
            continue
        if _is_copy(model, found):
            yield Variant(model=replace(found, name=name), stored=weights_format(found))


def _is_copy(model: Model, copy: Model) -> bool:
    if model.weights is None or copy.weights is None or model.layers() != copy.layers():
        return False
    ratio = copy.weights.parameters / max(1, model.weights.parameters)
    return weights_format(copy) != weights_format(model) and abs(ratio - 1) < NEAR
