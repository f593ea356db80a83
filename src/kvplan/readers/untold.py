"""A file that names no model_type: told by keys that no other kind of file has, or refused.

Some of these files are configs of another layout, whose keys are conventional; some are no config
of a language model at all, and then the sentence says what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core.errors import BadFile

# Keys that are in every file of a layout, and the type that stands for it here: state-spaces'
# mamba_ssm, the params.json of Meta and of Mistral (mistral-inference, args.py), and LitGPT's
# model_config (litgpt, config.py).
LAYOUTS: dict[str, tuple[str, ...]] = {
    "mamba_ssm": ("ssm_cfg", "d_model"),
    "params_json": ("dim", "n_layers", "n_heads"),
    "litgpt": ("n_layer", "n_head", "n_embd", "n_query_groups"),
}


def untold_type(raw: Mapping[str, Any]) -> str:
    """The type of a file that names none.

    Raises:
        BadFile: no layout that is known; the message says what the file is, where its keys tell.
    """
    for model_type, keys in LAYOUTS.items():
        if all(key in raw for key in keys):
            return model_type
    if isinstance(raw.get("peft_type"), str):
        raise _adapter(raw)
    if isinstance(raw.get("_class_name"), str):
        raise BadFile(
            f"The file is of diffusers ({raw['_class_name'][:60]}): a part of a pipeline, and no "
            "language model's config.",
            "Give the config.json of the pipeline's text encoder, or of another model.",
        )
    raise nameless()


def nameless() -> BadFile:
    """What is said of a config without a type."""
    return BadFile(
        "The config names no model_type, so it cannot be told what its keys mean.",
        'Add "model_type" as its published config.json has it, or pass --set model_type=TYPE.',
    )


def _adapter(raw: Mapping[str, Any]) -> BadFile:
    """A fine-tuning's adapter changes weights and keeps nothing of its own."""
    base = raw.get("base_model_name_or_path")
    named = base[:200] if isinstance(base, str) and base else ""
    return BadFile(
        f"The file is an adapter ({raw['peft_type'][:40]}) of {named or 'a model it does not name'}"
        ", and what is kept is that model's.",
        f"Ask for {named or 'the model that it was trained on'}.",
    )
