"""Encoders of the timm library: a config names one and gives no shape."""

from __future__ import annotations

from kvplan.readers.config import Config


def unknown(c: Config) -> None:
    """Nothing can be counted: the name stands for code (models/timm_wrapper)."""
    c.text("architecture")
