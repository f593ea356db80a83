"""A parsed config.json to a ``Model``: find the family, describe, weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core.errors import BadFile
from kvplan.core.model import Confidence, Model
from kvplan.readers.config import Config
from kvplan.readers.families.base import NO_OPTIONS, Decoder, Family, Options
from kvplan.readers.families.registry import family_of
from kvplan.readers.traits import traits
from kvplan.readers.unknown import assumed
from kvplan.readers.untold import nameless, untold_type
from kvplan.readers.weighing import weigh

DEPTH = "num_hidden_layers"
TOWERS = ("vision_config", "visual", "mm_vision_tower", "audio_config")
SHAPE = (DEPTH, "num_attention_heads", "hidden_size")


def read_config(
    raw: Mapping[str, Any],
    *,
    name: str = "",
    source: str = "config",
    options: Options = NO_OPTIONS,
    assume: str = "",
) -> Model:
    """The model that a config describes.

    Args:
        raw: a parsed config.json.
        name: what to call it; default: what the config calls itself, else its type.
        source: where the config is from, for the answer.
        options: what the asker adds (an encoder's length).
        assume: ``full`` answers a type that is not known as full attention in every layer.

    Raises:
        BadFile: not a config, or a key of it is absent, wrongly typed or out of range.
        UnknownModelType: the type is not known, and its keys are not conventional.
    """
    c = root(raw)
    family: Family | None = family_of(c.model_type)
    confidence: Confidence = "verified"
    warnings: tuple[str, ...] = ()
    section = c
    if family is None:
        confidence = "assumed"
        family, section, warnings = assumed(c, everything_full=assume == "full")
    elif isinstance(family, Decoder):
        section = _own_section(c)
        warnings = _defaulted(section)
    found = family.describe(section, options)
    weights, said = weigh(c, found)
    if isinstance(family, Decoder) and weights is not None:
        said = said + _uncounted_towers(c)
    if options.encoder_tokens is not None and found.encoder_tokens is None:
        said = (*said, "The model has no encoder whose length counts: --encoder-tokens is unused.")
    return Model(
        name=name or str(raw.get("_name_or_path") or c.model_type)[:200],
        model_type=c.model_type,
        architecture=architecture(raw),
        source=source,
        blocks=found.blocks,
        weights=weights,
        max_context_tokens=found.max_context_tokens,
        vocab_size=found.vocab_size,
        hidden_size=found.hidden_size,
        encoder_tokens=found.encoder_tokens,
        confidence=confidence,
        warnings=warnings + found.said + said,
        traits=traits(raw, c.model_type, found.max_context_tokens),
        facts=section.facts,
    )


def _own_section(c: Config) -> Config:
    """A text model's keys: the file, or its text_config where they stand there alone."""
    nested = isinstance(c.raw.get("text_config"), Mapping)
    return c.section("text_config", c.model_type) if nested and not c.in_file(DEPTH) else c


def root(raw: Mapping[str, Any]) -> Config:
    """The whole file as a config, its type checked."""
    if not isinstance(raw, Mapping):
        raise BadFile(f"A config is an object of keys, and this is a {type(raw).__name__}.")
    model_type = raw.get("model_type") or untold_type(raw)
    if not isinstance(model_type, str) or not model_type or len(model_type) > 100:
        raise nameless()
    return Config(raw, model_type)


def _uncounted_towers(c: Config) -> tuple[str, ...]:
    """What is said of the encoders that a text model's config names and its family does not read.

    Their code is published beside the weights (GLM-4V, Qwen-VL, LLaVA's own classes).
    """
    named = [key for key in TOWERS if c.raw.get(key) and key not in c.read]
    if not named:
        return ()
    alone = "Parameters are those of the language model alone"
    return (f"{alone}: what {' and '.join(named)} names is not counted.",)


def _defaulted(c: Config) -> tuple[str, ...]:
    """What is said of a model whose shape is its class's alone: often a type that is not its own.

    A published config gives at least one of these keys.
    """
    if any(c.in_file(key) or not c.has(key) for key in SHAPE):
        return ()
    named = ", ".join(SHAPE)
    return (f"The config gives none of {named}: all are the class defaults of {c.model_type}.",)


def architecture(raw: Mapping[str, Any]) -> str:
    """The first class that a config names, or an empty text."""
    named = raw.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str):
        return named[0][:200]
    return ""
