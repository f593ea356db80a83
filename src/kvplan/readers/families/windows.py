"""Dense decoders of which some or all layers look back over a window: Mistral, Cohere 2, OLMo 3, ….

Patterns of layers and parts of attention that several families share are here too.

The window and the file's ``layer_types`` are the base decoder's; a class here says which layers
are full where the file has no list (``__post_init__`` in models/<type>/configuration_<type>.py of
transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Decoder, Heads, Weights


class Periodic(Decoder):
    """Every ``period``-th layer is full; ``period_key`` is the key that may say otherwise."""

    period: int
    period_key: str = ""

    def derive(self, c: Config, count: int) -> list[str]:
        """Windows between the full layers, and after the last of them."""
        period = c.whole(self.period_key, self.period) if self.period_key else self.period
        return [SLIDING if (place + 1) % period else FULL for place in range(count)]


class LateWindow(Decoder):
    """Windows from the layer ``max_window_layers`` on."""

    def derive(self, c: Config, count: int) -> list[str]:
        """Full layers first."""
        if self.window(c) is None:
            return [FULL] * count
        full = min(count, c.whole("max_window_layers", least=0))
        return [FULL] * full + [SLIDING] * (count - full)


class Sinks(Decoder):
    """A learned logit a query head that takes its part of the softmax."""

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections and sinks."""
        return super().attention_weights(c, heads) + parts.scalar(heads.query)


class Gated(Decoder):
    """A gate on the attention's output, as wide as the queries."""

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections and the gate's, which has no bias."""
        gate = parts.linear(w.QUERY, self.hidden(c), heads.query * heads.key_dim)
        return super().attention_weights(c, heads) + gate


class Mistral(Decoder):
    """A window in every layer, where there is one."""

    attention_bias = False
    mlp_bias = False


class Cohere2(Periodic):
    """Attention and network side by side behind one norm."""

    norms = 1
    period = 4
    period_key = "sliding_window_pattern"
    mlp_bias: str | bool = False
    tied_default = True


class CohereCompassText(Cohere2):
    """Full layers where the file names none."""

    def derive(self, c: Config, count: int) -> list[str]:
        """models/cohere_compass/configuration_cohere_compass.py, __post_init__."""
        return [FULL] * count


class Exaone4(Periodic):
    """Norms behind attention and network; without a window every layer is full."""

    attention_bias = False
    mlp_bias: str | bool = False
    qk_norm = "head"
    period = 4
    period_key = "sliding_window_pattern"

    def derive(self, c: Config, count: int) -> list[str]:
        """models/exaone4/configuration_exaone4.py: no window means a pattern of 0.

        With that pattern and no layer_types the class itself fails; such a model has no windows.
        """
        return [FULL] * count if self.window(c) is None else super().derive(c, count)


class Olmo3(Periodic):
    """Norms behind attention and network, and over all heads of queries and keys."""

    mlp_bias = False
    qk_norm = "all"
    period = 4


class ModernBertDecoder(Decoder):
    """Layer norms that may lack a shift, the first block without one; a head of two layers."""

    head_bias = "decoder_bias"
    grouped_heads = False
    named_head_dim = False

    def derive(self, c: Config, count: int) -> list[str]:
        """The first of every ``global_attn_every_n_layers`` is full."""
        step = c.whole("global_attn_every_n_layers", 3)
        return [SLIDING if place % step else FULL for place in range(count)]

    def window(self, c: Config) -> int | None:
        """Half of ``local_attention``, which counts both sides."""
        local = c.whole("local_attention", 0, least=0)
        return local // 2 if local > 1 else None

    def scales(self, c: Config, count: int) -> Weights:
        """Norms of the model's width, with a shift where ``norm_bias`` says so."""
        return parts.norm(self.hidden(c), "layer" if c.flag("norm_bias") else "rms", count)

    def block_norms(self, c: Config) -> Weights:
        """None here: the first block has one fewer, so ``ending`` counts them all."""
        return ()

    def ending(self, c: Config) -> Weights:
        """All norms (embedding, two a block but the first, final, head) and the head's layers.

        models/modernbert_decoder/modeling_modernbert_decoder.py, ModernBertDecoderPredictionHead.
        """
        hidden = self.hidden(c)
        dense = parts.linear(w.HEAD, hidden, hidden, c.flag("classifier_bias"))
        return self.scales(c, 2 * self.depth(c) + 2) + dense + self.head(c)


class LastFull(Decoder):
    """Every fourth layer, counted from the last, is full."""

    def derive(self, c: Config, count: int) -> list[str]:
        """models/muse_glimmer/configuration_muse_glimmer.py, __post_init__."""
        return [SLIDING if (count - 1 - place) % 4 else FULL for place in range(count)]


class MuseGlimmerText(Gated, LastFull):
    """Four norms a block; those of queries and keys have no scale."""

    norms = 4
    mlp_bias = False
