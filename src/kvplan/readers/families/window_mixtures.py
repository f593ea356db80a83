"""Mixtures of experts of which some layers look back over a window: GPT-OSS, EXAONE, AFMoE, ….

Classes cite ``models/<type>/`` of transformers 5.24.0; ``derive`` is the config class's
``__post_init__``.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Heads, Weights
from kvplan.readers.families.mixtures import DENSE, SPARSE, DenseFirst, Mixture, Named, Stepped
from kvplan.readers.families.windows import Cohere2, Exaone4, Gated, LateWindow, Periodic, Sinks


class GptOss(Sinks, Periodic, Mixture):
    """Windows on every other layer, sinks, biases on experts and router."""

    period = 2
    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"
    expert_bias = True
    router_bias = True


class Dots1(LateWindow, DenseFirst):
    """Norms of queries and keys; dense blocks first; windows only behind ``max_window_layers``."""

    qk_norm = "head"
    expert_count = "n_routed_experts"
    shared_count = "n_shared_experts"


class ExaoneMoe(Exaone4, Named):
    """EXAONE 4's attention; ``first_k_dense_replace`` dense blocks where none are named."""

    shared_count = "num_shared_experts"

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """Dense blocks first."""
        dense = min(count, c.whole("first_k_dense_replace", 1, least=0))
        return [DENSE] * dense + [SPARSE] * (count - dense)


class Cohere2Moe(Cohere2, Named):
    """One norm a block; experts as wide as ``intermediate_size``, dense blocks first if any.

    The first blocks have a pattern of windows of their own.
    """

    expert_inner = "intermediate_size"
    shared_count = "num_shared_experts"

    def derive(self, c: Config, count: int) -> list[str]:
        """cohere2_moe/configuration_cohere2_moe.py: each part counts its own places."""
        dense = self.num_dense(c, count)
        first = c.whole("prefix_dense_sliding_window_pattern", 1)
        start = [SLIDING if (place + 1) % first else FULL for place in range(dense)]
        return start + super().derive(c, count - dense)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """Dense blocks first."""
        dense = self.num_dense(c, count)
        return [DENSE] * dense + [SPARSE] * (count - dense)

    def num_dense(self, c: Config, count: int) -> int:
        """Dense blocks, of those there are."""
        return min(count, c.whole("first_k_dense_replace", 0, least=0))

    def inner(self, c: Config) -> int:
        """Width of a dense network."""
        return c.first_whole("prefix_dense_intermediate_size", "intermediate_size")


class Kolibri1(Periodic, Mixture):
    """Every fifth layer is full; four norms a block, and of queries and keys; a shared network."""

    norms = 4
    attention_bias = False
    qk_norm = "head"
    period = 5
    shared_width = "shared_expert_intermediate_size"


class Mellum(Named):
    """Norms of queries and keys; all layers full and sparse where the file names none."""

    qk_norm = "head"
    dense = 0

    def derive(self, c: Config, count: int) -> list[str]:
        """A window alone makes no layer a sliding one."""
        return [FULL] * count


class Flint(Sinks, Stepped):
    """Full layers at both ends and every fourth; the first two blocks dense; a shared network."""

    qk_norm = "head"
    shared_width = "shared_expert_intermediate_size"

    def derive(self, c: Config, count: int) -> list[str]:
        """flint/configuration_flint.py, __post_init__."""
        return [
            FULL if place < 2 or place % 4 == 1 or place == count - 1 else SLIDING
            for place in range(count)
        ]

    def dense_places(self, c: Config) -> list[int]:
        """The first two unless the file names others."""
        return c.wholes("mlp_only_layers", (0, 1))


class Afmoe(Gated, Periodic, DenseFirst):
    """Gated attention with norms of queries and keys, four norms a block, shared experts."""

    norms = 4
    qk_norm = "head"
    period = 4
    period_key = "global_attn_every_n_layers"
    first_dense = "num_dense_layers"
    shared_count = "num_shared_experts"
    router_bias = True


class Beam(Gated, Periodic, Named):
    """Gated attention with norms of queries and keys, four norms a block; the last layer full."""

    norms = 4
    qk_norm = "head"
    period = 6
    dense = 3

    def derive(self, c: Config, count: int) -> list[str]:
        """beam/configuration_beam.py, __post_init__."""
        return [*super().derive(c, count)[:-1], FULL][:count]

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """The gate has a bias a head."""
        return super().attention_weights(c, heads) + parts.scalar(heads.query)
