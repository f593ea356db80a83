"""A model type that is not known: answered where its keys are conventional, refused otherwise.

Conventional means: heads, widths and layers under the names that grouped-query attention has, and
no key that speaks of another kind of cache. The answer is then that of full attention in every
layer, marked as assumed. Its parameters are not counted: nothing says what its layers hold.

Two kinds are told better: a wrapper whose language model's section names a known type is what that
type is, and of an encoder nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kvplan.core.errors import UnknownModelType
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Decoder,
    Description,
    Family,
    Heads,
    Options,
    attention_cache,
)
from kvplan.readers.families.encoder_alone import keeping_nothing, reason
from kvplan.readers.families.registry import family_of

# Words in a key that speak of a cache that is not keys and values of every token.
SUSPECT = re.compile(
    r"sliding|window|chunk|local_|latent|lora|mla|_rank|ssm|mamba|state|conv_|_conv|conv1d|"
    r"linear_|recurr|rwkv|delta|kda|indexer|index_|compress|layer_types|layers_block|pattern|"
    r"hybrid|cross|encoder|shared_kv|kv_shar|memory|sparse|channels|multi_query|group_num|"
    r"block_config|retention|hyena|lstm|attn_(layer|type|period|config|window)|"
    r"attention_(type|class|layer|kind|config|window)|per_layer|_every|interval|period|no_rope|"
    # Layers in groups of which one is attention (mlx-lm 0.32.0, bailing_moe_linear.py), layers that
    # read another's keys and values (hunyuan.py, afm7.py), heads that share one (plamo.py), layers
    # that run several times (Ouro), and the gated states of HGRN.
    r"layer_group|use_cla$|kv_reuse|shared_head|ut_steps|lower_bound|forget_gate",
    re.I,
)
# Keys with such a word that say nothing about the cache.
HARMLESS = re.compile(
    r"output_hidden_states|image_token_index|video_token_index|audio_token_index|num_channels|"
    r"use_cache|cross_entropy|lora_alpha|lora_dropout|is_encoder_decoder|quantization|"
    r"moe_|expert|router|decoder_sparse_step|add_cross_attention|_token_|state_dict|mlp_|"
    # Of encoders and their adapters (Phi 4 multimodal, ERNIE 4.5 VL, MiniCPM-o), and a flag that
    # is read as one KV head.
    r"(speech|vision)_lora|(spatial|temporal)_conv_size|audio_chunk|chunk_input|^multi_query$",
    re.I,
)
HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
DEPTH_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTH_KEYS = ("hidden_size", "n_embd", "d_model", "dim")
HEAD_WIDTH_KEYS = ("head_dim", "head_size")
# Names of the number of KV heads. vLLM 0.32.0, transformers_utils/model_arch_config_convertor.py
# (n_head_kv, num_kv_heads), model_executor/models/step1.py (num_attention_groups); llama.cpp
# of February 2025, convert_hf_to_gguf.py, CodeShellModel (num_query_groups); mlx-lm, lille-130m.py
# (n_kv_heads); LitGPT, config.py (n_query_groups).
KV_KEYS = (
    "num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "num_attention_groups",
    "num_query_groups", "n_query_groups",
)  # fmt: skip
# Sections that hold the language model of a wrapper.
TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "llm_cfg")
# Types whose base model takes and returns no cache (transformers 5.24.0, forward of each).
ENCODERS = frozenset({
    "albert", "altclip", "beit", "chinese_clip", "clip", "clip_text_model", "clip_vision_model",
    "convbert", "deberta", "deberta-v2", "deit", "dinov2", "distilbert", "eurobert", "fnet",
    "hubert", "ibert", "jina_embeddings_v3", "layoutlm", "layoutlmv3", "lilt", "longformer", "luke",
    "mobilebert", "modernbert", "mpnet", "mra", "nomic_bert", "nystromformer", "siglip",
    "siglip_text_model", "siglip_vision_model", "squeezebert", "vit", "wav2vec2", "wavlm", "yoso",
})  # fmt: skip


class Assumption(NamedTuple):
    """How a type that is not known is answered: by which family, from which section."""

    family: Family
    section: Config
    warnings: tuple[str, ...]


class UncountedEncoder(Family):
    """An encoder of which the number of layers alone is known."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """Nothing kept in any layer; no tensors."""
        depth = c.layers(_present(c, DEPTH_KEYS))
        return Description(keeping_nothing(depth), (), Decoder().max_context(c), None, None)


class Assumed(Family):
    """Full attention in every layer, by the conventional keys."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The cache alone; no tensors."""
        depth = c.layers(_present(c, DEPTH_KEYS))
        cache = attention_cache(self.heads(c))
        return Description(
            blocks=Stack.uniform((cache,), depth),
            tensors=(),
            max_context_tokens=Decoder().max_context(c),
            vocab_size=c.whole("vocab_size") if c.has("vocab_size") else None,
            hidden_size=c.whole(_present(c, WIDTH_KEYS)) if _has(c, WIDTH_KEYS) else None,
        )

    def heads(self, c: Config) -> Heads:
        """Query heads, KV heads and their width, under any of the usual names."""
        query = c.whole(_present(c, HEAD_KEYS))
        one = 1 if c.flag("multi_query") else query
        kv = c.whole(_present(c, KV_KEYS), one)
        if _has(c, HEAD_WIDTH_KEYS):
            dim = c.whole(_present(c, HEAD_WIDTH_KEYS))
        else:
            dim = c.whole(_present(c, WIDTH_KEYS)) // query
        return Heads(query, kv, dim, dim)


def assumed(c: Config, everything_full: bool = False) -> Assumption:
    """What to answer with, and the warnings that name what was assumed.

    Raises:
        UnknownModelType: a key suggests another kind of cache, or the conventional ones are absent;
            ``everything_full`` (``--assume full``) passes over the former.
    """
    section = _text_section(c)
    if c.model_type in ENCODERS:
        said = f"{reason(repr(c.model_type))} Its parameters are not counted."
        return Assumption(UncountedEncoder(), section, (said,))
    nested = None if section is c or everything_full else family_of(section.model_type)
    if nested is not None:
        return Assumption(nested, section, (_nested_said(c, section),))
    return Assumption(Assumed(), section, (_conventional(c, section, everything_full),))


def _nested_said(c: Config, section: Config) -> str:
    return (
        f"The model type {c.model_type!r} is not known. Assumed: what its {section.path} names, "
        f"{section.model_type!r}, is all that keeps a cache. Parameters are those of that alone."
    )


def _conventional(c: Config, section: Config, everything_full: bool) -> str:
    """What is assumed of a section of conventional keys."""
    suspects = [] if everything_full else suspect_keys(section.raw)
    if suspects:
        raise UnknownModelType(
            f"The model type {c.model_type!r} is not known, and its config has keys that suggest "
            f"another kind of cache than full attention: {', '.join(suspects[:8])}.",
            "Pass --assume full to size it as full attention in every layer all the same.",
        )
    missing = [
        keys[0] for keys in (DEPTH_KEYS, HEAD_KEYS) if not _has(section, keys)
    ]  # fmt: skip
    if not _has(section, HEAD_WIDTH_KEYS + WIDTH_KEYS):
        missing.append("head_dim or hidden_size")
    if missing:
        raise UnknownModelType(
            f"The model type {c.model_type!r} is not known, and its config has no "
            f"{' and no '.join(missing)}.",
            "Pass the missing keys with --set, as in --set num_attention_heads=32.",
        )
    given = [] if _has(section, HEAD_WIDTH_KEYS) else ["heads as wide as hidden_size / heads"]
    said = "; ".join(["full attention in every layer", *_kv_heads_said(section), *given])
    warning = f"The model type {c.model_type!r} is not known. Assumed: {said}."
    return f"{warning} Its parameters are not counted."


def _kv_heads_said(c: Config) -> list[str]:
    """What was taken for the number of KV heads, where it is not the standard key.

    Raises:
        UnknownModelType: two keys of that meaning disagree.
    """
    found = {key: c.whole(key) for key in KV_KEYS if c.has(key)}
    if c.flag("multi_query"):
        found["multi_query"] = 1
    if len(set(found.values())) > 1:
        listed = " and ".join(f"{key} {count}" for key, count in found.items())
        raise UnknownModelType(
            f"The model type {c.model_type!r} is not known, and its config has {listed}: "
            "only one of them can be the number of KV heads.",
            "Pass that number for all of them with --set.",
        )
    key = next(iter(found), "")
    if not key:
        return ["a KV head for every query head"]
    if key == "multi_query":
        return ["one KV head, by multi_query"]
    return [] if key == KV_KEYS[0] else [f"{key} as the number of KV heads"]


def suspect_keys(raw: Mapping[str, Any]) -> list[str]:
    """The keys of a config that suggest another kind of cache, with their values set."""
    windows_off = raw.get("use_sliding_window") is False or _holds_all(raw)
    found = []
    for key, value in raw.items():
        if value in (None, False, 0, [], {}, "") or HARMLESS.search(key):
            continue
        if windows_off and ("window" in key or "sliding" in key):
            continue
        if SUSPECT.search(key):
            found.append(key)
    return sorted(found)


def _holds_all(raw: Mapping[str, Any]) -> bool:
    """Whether a window is as long as the longest context, so that it never drops a token."""
    window, longest = raw.get("sliding_window"), raw.get("max_position_embeddings")
    return isinstance(window, int) and isinstance(longest, int) and window >= longest > 0


def _text_section(c: Config) -> Config:
    """The language model's section where a config has one."""
    for key in TEXT_SECTIONS:
        if isinstance(c.raw.get(key), Mapping):
            return c.section(key, c.model_type)
    return c


def _has(c: Config, keys: tuple[str, ...]) -> bool:
    return any(c.has(key) for key in keys)


def _present(c: Config, keys: tuple[str, ...]) -> str:
    return next((key for key in keys if c.has(key)), keys[0])
