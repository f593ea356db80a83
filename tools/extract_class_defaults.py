"""Write the class defaults of every config type of transformers to the package's data folder.

A published ``config.json`` is the difference from its type's class defaults, so a reader needs the
defaults themselves: the raw values of the class, before anything is derived from them.

Run it in an environment that has transformers:

    python tools/extract_class_defaults.py src/kvplan/data/class_defaults.json
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

# Keys that say nothing about shapes: generation, training, tokens, activations, output switches.
IRRELEVANT = {
    "transformers_version", "output_hidden_states", "output_attentions", "return_dict",
    "chunk_size_feed_forward", "id2label", "label2id", "problem_type", "use_cache", "torchscript",
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id",
    "initializer_range", "rms_norm_eps", "layer_norm_eps", "norm_eps", "attention_dropout",
    "hidden_dropout", "dropout", "activation_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop",
    "hidden_act", "hidden_activation", "activation_function", "rope_scaling", "rope_theta",
    "rope_parameters", "default_theta",
}  # fmt: skip


def config_classes() -> dict[str, Any]:
    """Every config class by its model type, nested ones that no mapping names included."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: dict[str, Any] = {}
    pending = []
    for model_type in CONFIG_MAPPING:
        try:
            pending.append((model_type, CONFIG_MAPPING[model_type]))
        except Exception as error:  # a type whose module needs an absent package
            print(f"left out {model_type}: {error}", file=sys.stderr)
    while pending:
        model_type, cls = pending.pop(0)
        if model_type in found or not model_type:
            continue
        found[model_type] = cls
        specs = (getattr(cls, "sub_configs_defaults", None) or {}).values()
        pending += [(section_type(spec), spec.config_class) for spec in specs if not is_open(spec)]
    return found


def is_open(spec: Any) -> bool:
    """Whether the file's own ``model_type`` decides the class of a section."""
    return getattr(spec.config_class, "__name__", "") == "AutoConfig"


def section_type(spec: Any) -> str:
    """The type of a section; the name of its class where that has no type."""
    return str(spec.model_type or spec.config_class.__name__)


def plain(value: Any) -> bool:
    """Whether a default can be written as JSON."""
    if isinstance(value, list | tuple):
        return all(plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(item) for key, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def describe(cls: Any) -> dict[str, Any]:
    """The defaults, the older names and the nested sections of one class."""
    defaults = {}
    for field in dataclasses.fields(cls):
        value = field.default
        if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if value is not dataclasses.MISSING and field.name not in IRRELEVANT and plain(value):
            defaults[field.name] = list(value) if isinstance(value, tuple) else value
    for name in ("tie_word_embeddings", "is_encoder_decoder"):
        if hasattr(cls, name) and plain(getattr(cls, name)):
            defaults.setdefault(name, getattr(cls, name))
    row: dict[str, Any] = {"defaults": defaults}
    names = {key: native for key, native in cls.attribute_map.items() if isinstance(native, str)}
    if names:
        row["names"] = names
    sections = {}
    for key, spec in (getattr(cls, "sub_configs_defaults", None) or {}).items():
        section: dict[str, Any] = {"type": section_type(spec)}
        if spec.init_kwargs and plain(spec.init_kwargs):
            section["values"] = spec.init_kwargs
        if is_open(spec):
            section["open"] = True
        if spec.optional:
            section["optional"] = True
        sections[key] = section
    if sections:
        row["sections"] = sections
    return row


def main(target: str) -> None:
    """Write one line a type, sorted, so that a new release shows as a small diff."""
    import transformers

    rows = {name: describe(cls) for name, cls in sorted(config_classes().items())}
    lines = [f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in rows.items()]
    version = f"transformers {transformers.__version__}"
    text = f'{{"source": {json.dumps(version)}, "types": {{\n' + ",\n".join(lines) + "\n}}\n"
    Path(target).write_text(text, encoding="utf-8")
    print(f"{len(rows)} types of {version} -> {target}")


if __name__ == "__main__":
    main(sys.argv[1])
