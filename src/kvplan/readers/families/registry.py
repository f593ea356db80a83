"""Which family describes a model type, and which tower a nested encoder's type.

A family is imported when a model of it is read, so that the command starts fast. Each entry is
``module:Class`` below this package (families) or below ``kvplan.readers.towers``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

FAMILIES: dict[str, str] = {
    # full.py
    "llama": "full:Llama",
    "qwen3": "full:Qwen3",
    # windows.py
    "gemma2": "windows:Gemma2",
    "gemma3_text": "windows:Gemma3",
    # latent.py
    "deepseek_v3": "latent:DeepseekV3",
    "kimi_k2": "latent:DeepseekV3",
    # vision.py
    "gemma3": "vision:Gemma3Vision",
}

TOWERS: dict[str, str] = {
    # vit.py
    "siglip_vision_model": "vit:siglip",
}


@cache
def family_of(model_type: str) -> Any:
    """The family of a type, or None."""
    entry = FAMILIES.get(model_type)
    if entry is None:
        return None
    module, name = entry.split(":")
    return getattr(import_module(f"kvplan.readers.families.{module}"), name)()


@cache
def tower_of(model_type: str) -> Any:
    """The tower function of a nested encoder's type, or None."""
    entry = TOWERS.get(model_type)
    if entry is None:
        return None
    module, name = entry.split(":")
    return getattr(import_module(f"kvplan.readers.towers.{module}"), name)
