"""Granite's mixtures, with a shared network and with windows.

Files cited are those of transformers 5.24.0, below ``models/``.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.base import FULL, SLIDING, Decoder
from kvplan.readers.families.mixtures import Mixture
from kvplan.readers.families.windows import Sinks


class FirstFull(Decoder):
    """The first of every four layers is full."""

    def derive(self, c: Config, count: int) -> list[str]:
        """granite_swa/configuration_granite_swa.py, __post_init__."""
        return [SLIDING if place % 4 else FULL for place in range(count)]


class GraniteSwa(Sinks, FirstFull):
    """Dense, with windows and a sink a head."""


class GraniteMoe(Mixture):
    """Experts in every block; a shared network where ``shared_intermediate_size`` is not 0."""

    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"
    shared_width = "shared_intermediate_size"


class GraniteMoeSwa(Sinks, FirstFull, GraniteMoe):
    """The mixture with windows and a sink a head."""
