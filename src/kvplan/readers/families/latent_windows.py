"""Latent attention of two sizes, one of them over a window: dots 3 note.

Files named here are transformers 5.24.0's, below ``models/dots3_note/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Mixer, Weights, layer_kinds
from kvplan.readers.families.indexed import DeepseekV32
from kvplan.readers.families.latent import Shape, every_sparse

INDEXED = "indexed_attention"

# configuration_dots3_note.py, Dots3NoteTextConfig.__post_init__: the windowed layers' own widths.
WINDOWED_WIDTHS = {
    "num_attention_heads": 64,
    "q_lora_rank": 1024,
    "kv_lora_rank": 1024,
    "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}
WINDOWED_HEAD = 256


class Dots3Note(DeepseekV32):
    """An indexer in the layers that see every token, whose keys are in 32-bit floats.

    modeling_dots3_note.py, Dots3NoteTextModel: the indexed layers' rotation is computed in float32
    and the indexer's keys stay so.
    """

    expert_keys = ("n_routed_experts",)

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One attention a kind of layer."""
        kinds = self.kinds(c, self.depth(c))
        return Stack.named(
            kinds, {kind: self.of_kind(c, kind, kinds.index(kind)) for kind in dict.fromkeys(kinds)}
        )

    def kinds(self, c: Config, count: int) -> list[str]:
        """The kind of each layer; ``use_dsa`` renames those that see every token."""
        dense = c.has("use_dsa") and not c.flag("use_dsa")
        wide = FULL if dense else INDEXED
        if not c.has("layer_types"):
            windows = c.flag("use_sliding_window", True)
            return [
                SLIDING if windows and place >= 2 and place % 4 != 1 else wide
                for place in range(count)
            ]
        kinds = layer_kinds(c, count, known=(FULL, SLIDING, INDEXED))
        if c.has("per_layer_config") and not c.has("use_dsa"):
            return kinds
        return [kind if kind == SLIDING else wide for kind in kinds]

    def of_kind(self, c: Config, kind: str, place: int) -> Mixer:
        """The attention of one kind of layer, of which ``place`` is the first."""
        if kind == SLIDING:
            own = c.with_values(**self.windowed_values(c, place))
            shape = self.shape(own)
            return Mixer((shape.cache(self.window(c)),), self.latent_weights(own, shape))
        shape = self.shape(c)
        weights = self.latent_weights(c, shape)
        if kind == FULL:
            return Mixer((shape.cache(),), weights)
        cache = shape.cache(index_dim=c.whole("index_head_dim"), index_bytes=FLOAT32_BYTES)
        return Mixer((cache,), weights + self.indexer(c, shape.query_rank))

    def windowed_values(self, c: Config, place: int) -> Mapping[str, Any]:
        """The keys of the windowed layers: per layer in a saved file, ``swa_…`` in a first one."""
        if c.has("per_layer_config"):
            return layer_section(c, place).raw
        found = {key: c.whole(f"swa_{key}", width) for key, width in WINDOWED_WIDTHS.items()}
        rope = c.whole("swa_head_dim", WINDOWED_HEAD) - found["qk_nope_head_dim"]
        return found | {"qk_rope_head_dim": c.whole("swa_qk_rope_head_dim", rope)}

    def window(self, c: Config) -> int | None:
        """512 where neither of its keys is there."""
        return c.first_whole("sliding_window", "sliding_window_size", default=512)

    def latent_weights(self, c: Config, shape: Shape) -> Weights:
        """With a norm of the rotary key and a gate a head."""
        gate = parts.linear(w.QUERY, self.hidden(c), shape.heads)
        return (*super().latent_weights(c, shape), *parts.norm(shape.rope), *gate)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """By ``first_k_dense_replace`` and ``moe_layer_freq``."""
        return every_sparse(c, count)

    def shared_width(self, c: Config) -> int:
        """A width of its own, under a newer key or an older one."""
        return c.first_whole(
            "moe_shared_expert_intermediate_size", "shared_experts_intermediate_size"
        )


def layer_section(c: Config, place: int) -> Config:
    """What the file says of one layer alone; its keys are places, with zeros before or without."""
    layers = c.section("per_layer_config")
    wanted = str(place)
    named = [key for key in layers.raw if (str(key).lstrip("0") or "0") == wanted]
    return layers.section(named[0] if named else wanted)
