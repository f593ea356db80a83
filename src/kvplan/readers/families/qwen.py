"""Qwen 2 and 3, dense and of experts, and the text models of their vision-language kin.

All have a window only where ``use_sliding_window`` says so (transformers 5.24.0,
models/qwen2/configuration_qwen2.py and its kin, __post_init__).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Decoder, Weights
from kvplan.readers.families.mixtures import Stepped
from kvplan.readers.families.windows import LateWindow


class SwitchedWindow(Decoder):
    """A window that counts only under ``use_sliding_window``."""

    def window(self, c: Config) -> int | None:
        """The window, or None where it is switched off."""
        return super().window(c) if c.flag("use_sliding_window") else None


class Qwen2(SwitchedWindow, LateWindow):
    """Biases on queries, keys and values alone."""

    attention_bias = True
    output_bias = False
    mlp_bias = False


class Qwen3(SwitchedWindow, LateWindow):
    """Norms on each head's queries and keys."""

    qk_norm = "head"
    mlp_bias = False


class Qwen3VlText(Decoder):
    """Qwen 3 without a window."""

    qk_norm = "head"
    mlp_bias = False


class Qwen2Moe(SwitchedWindow, Stepped):
    """A gated shared network beside the experts; windows on every other of the first layers."""

    attention_bias = "qkv_bias"
    output_bias = False
    shared_width = "shared_expert_intermediate_size"

    def derive(self, c: Config, count: int) -> list[str]:
        """models/qwen2_moe/configuration_qwen2_moe.py, __post_init__."""
        if self.window(c) is None:
            return [FULL] * count
        end = c.whole("max_window_layers", least=0)
        return [FULL if place % 2 or place >= end else SLIDING for place in range(count)]

    def shared(self, c: Config) -> Weights:
        """The shared network and the gate of one element that scales it."""
        return (*super().shared(c), *parts.linear(w.SCALAR, self.hidden(c), 1))


class Qwen3Moe(SwitchedWindow, Stepped):
    """Norms on each head's queries and keys; the window, where switched on, in every layer."""

    qk_norm = "head"


class Qwen3VlMoeText(Stepped):
    """Qwen 3 of experts without a window."""

    qk_norm = "head"
