"""A parsed config.json to a ``Model``: find the family, describe, weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core.errors import BadFile, UnknownModelType
from kvplan.core.model import Model
from kvplan.core.weights import Weight, Weights, count_parameters
from kvplan.readers.config import Config
from kvplan.readers.families.base import NO_OPTIONS, Description, Options
from kvplan.readers.families.registry import family_of

BYTES_PER_PARAMETER = {
    "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "float64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
}  # fmt: skip


def read_config(
    raw: Mapping[str, Any],
    *,
    name: str = "",
    source: str = "config",
    options: Options = NO_OPTIONS,
) -> Model:
    """The model that a config describes.

    Args:
        raw: a parsed config.json.
        name: what to call it; default: what the config calls itself, else its type.
        source: where the config is from, for the answer.
        options: what the asker adds (an encoder's length).

    Raises:
        BadFile: not a config, or a key of it is absent, wrongly typed or out of range.
        UnknownModelType: the type is not known.
    """
    c = root(raw)
    family = family_of(c.model_type)
    if family is None:
        raise UnknownModelType(f"The model type {c.model_type!r} is not known.")
    found: Description = family.describe(c, options)
    return Model(
        name=name or str(raw.get("_name_or_path") or c.model_type),
        model_type=c.model_type,
        architecture=architecture(raw),
        source=source,
        blocks=found.blocks,
        weights=None if found.uncounted else weigh(c, found.tensors),
        max_context_tokens=found.max_context_tokens,
        vocab_size=found.vocab_size,
        hidden_size=found.hidden_size,
        encoder_tokens=found.encoder_tokens,
        warnings=(f"Parameters are not counted: {found.uncounted}",) if found.uncounted else (),
    )


def root(raw: Mapping[str, Any]) -> Config:
    """The whole file as a config, its type checked."""
    if not isinstance(raw, Mapping):
        raise BadFile(f"A config is an object of keys, and this is {type(raw).__name__}.")
    model_type = raw.get("model_type")
    if not isinstance(model_type, str) or not model_type or len(model_type) > 100:
        raise BadFile(
            "The config names no model_type, so it cannot be told what its keys mean.",
            'Add "model_type" (as in a published config.json).',
        )
    return Config(raw, model_type)


def architecture(raw: Mapping[str, Any]) -> str:
    """The first class that a config names, or an empty text."""
    named = raw.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str):
        return named[0]
    return ""


def weigh(c: Config, tensors: tuple[Weight, ...]) -> Weights:
    """Parameters, and their bytes in the config's type (16 bits where it names none)."""
    parameters, active = count_parameters(tensors)
    dtype = c.raw.get("dtype") or c.raw.get("torch_dtype") or "bfloat16"
    size = BYTES_PER_PARAMETER.get(str(dtype).removeprefix("torch."), 2)
    return Weights(
        tensors=tensors,
        parameters=parameters,
        active_parameters=active,
        num_bytes=parameters * size,
        source=f"{parameters:,} parameters × {size} bytes ({dtype})",
    )
