"""Experts that vLLM and SGLang move between ranks until all have as much to do."""

from __future__ import annotations

from typing import Final

EPLB: Final = "--enable-eplb"
NOT_COUNTED: Final = f"What {EPLB} takes to move experts, and copies of them, are not counted."
