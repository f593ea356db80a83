"""Speech to text with blocks of a language model: grouped heads, rotary or learned positions.

The cross-attention has the same heads as the decoder's own. Rules are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.model import Block
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Heads, Weights
from kvplan.readers.families.encoder_decoder import EncoderDecoder, caches, full_attention, tower


class SpeechDecoder(EncoderDecoder):
    """A decoder of two attentions, a network and three norms a block over an encoder of sound.

    ``norm`` is ``rms`` where norms are scales alone, ``gated`` whether a network has a gate in its
    first projection, ``head_bias`` whether the head has one. ``output_bias`` is that of an
    attention's last projection, None for the same as the others.
    """

    depth_key = "num_hidden_layers"
    norm: str = "rms"
    gated: bool = True
    output_bias: bool | None = None
    head_bias: bool = False

    def tables(self, c: Config, alone: bool) -> Weights:
        """The decoder's."""
        return parts.embedding(self.vocab(c), self.hidden(c))

    def decoder(self, c: Config) -> Weights:
        """Blocks and a final norm."""
        part, depth, width = self.part(c), self.decoder_depth(c), self.hidden(c)
        bias = part.flag("attention_bias")
        heads = self.heads(c)
        one = attention_weights(heads, width, bias, self.output_bias)
        network = parts.mlp(width, part.whole("intermediate_size"), gated=self.gated, bias=True)
        return (
            *parts.repeat(one, 2 * depth),
            *parts.repeat(network, depth),
            *parts.norm(width, self.norm, 3 * depth + 1),
        )

    def head(self, c: Config) -> Weights:
        """The projection, and its bias whether it is tied or not."""
        bias = (w.Weight(w.BIAS, self.vocab(c)),) if self.head_bias else ()
        return super().head(c) + bias

    def heads(self, c: Config) -> Heads:
        """Query heads, KV heads and the width of one."""
        return grouped_heads(self.part(c), "num_attention_heads", "num_key_value_heads")


class Moonshine(SpeechDecoder):
    """Three convolutions over the samples, rotary positions, norms without a shift."""

    output_bias = False

    def encoder(self, c: Config) -> Weights:
        """models/moonshine/modeling_moonshine.py, MoonshineEncoder."""
        width, depth = self.hidden(c), c.layers("encoder_num_hidden_layers")
        heads = grouped_heads(c, "encoder_num_attention_heads", "encoder_num_key_value_heads")
        one = attention_weights(heads, width, c.flag("attention_bias"), self.output_bias)
        network = parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True)
        return (
            *parts.convolution("", 1, width, 127, bias=False),
            *parts.convolution("", width, 2 * width, 7),
            *parts.convolution("", 2 * width, width, 3),
            *parts.norm(width, "layer"),
            *parts.repeat(one + network, depth),
            *parts.norm(width, self.norm, 2 * depth + 1),
        )


class MoonshineStreaming(SpeechDecoder):
    """Frames of samples, causal convolutions and windows in an encoder of its own width."""

    output_bias = False

    def encoder(self, c: Config) -> Weights:
        """models/moonshine_streaming/modeling_moonshine_streaming.py, MoonshineStreamingEncoder."""
        part = c.section("encoder_config")
        width, depth = part.whole("hidden_size"), part.layers()
        heads = grouped_heads(part, "num_attention_heads", "num_key_value_heads")
        frame = round(part.number("sample_rate") * part.number("frame_ms") / 1000)
        one = attention_weights(heads, width, part.flag("attention_bias"))
        network = parts.mlp(width, part.whole("intermediate_size"), gated=False, bias=True)
        return (
            *parts.scalar(1),
            *parts.convolution("", width, 2 * width, 5),
            *parts.convolution("", 2 * width, width, 5),
            *parts.linear("", frame, width),
            *parts.repeat(one + network, depth),
            *parts.norm(width, self.norm, 2 * depth + 1),
        )

    def decoder(self, c: Config) -> Weights:
        """Positions of the encoder's output are learned, and widened where the widths differ."""
        source, width = c.section("encoder_config").whole("hidden_size"), self.hidden(c)
        return (
            *super().decoder(c),
            *parts.embedding(c.whole("max_position_embeddings"), source, w.POSITION),
            *(parts.linear(w.PROJECTOR, source, width) if source != width else ()),
        )


class CohereAsr(SpeechDecoder):
    """A conformer, and a decoder with layer norms and learned positions."""

    norm = "layer"
    gated = False
    head_bias = True

    def encoder(self, c: Config) -> Weights:
        """The tower of its section, whose absent keys have this class's values."""
        return tower(self.encoder_part(c))

    def decoder(self, c: Config) -> Weights:
        """models/cohere_asr/modeling_cohere_asr.py, CohereAsrDecoder."""
        width = self.hidden(c)
        source = self.encoder_part(c).whole("hidden_size")
        return (
            *super().decoder(c),
            *parts.norm(width, "layer"),
            *parts.embedding(c.whole("max_position_embeddings"), width, w.POSITION),
            *parts.linear(w.PROJECTOR, source, width, bias=True),
        )

    def encoder_part(self, c: Config) -> Config:
        """configuration_cohere_asr.py, __post_init__."""
        return c.section("encoder_config", inherits=True)

    def source_tokens(self, c: Config) -> int | None:
        """The encoder's positions."""
        return self.encoder_part(c).whole("max_position_embeddings")


class Canary(CohereAsr):
    """The same with computed positions, no projection, and the decoder in a section."""

    def part(self, c: Config) -> Config:
        """The decoder's section."""
        return c.section("decoder_config")

    def encoder_part(self, c: Config) -> Config:
        """The encoder's section."""
        return c.section("encoder_config")

    def decoder(self, c: Config) -> Weights:
        """models/canary/modeling_canary.py, CanaryDecoder."""
        return SpeechDecoder.decoder(self, c) + parts.norm(self.hidden(c), "layer")


class Dia(EncoderDecoder):
    """Text to the codes of speech: every channel of codes has a table, one head for all.

    models/dia/modeling_dia.py. The cross-attention has heads of its own.
    """

    depth_key = "num_hidden_layers"

    def blocks(self, c: Config, source: int | None) -> Stack[Block]:
        """Grouped heads over its own tokens, others over the text."""
        cross = self.cross_heads(c)
        return Stack.uniform(
            caches(self.heads(c), source, over_source=cross), self.decoder_depth(c)
        )

    def tables(self, c: Config, alone: bool) -> Weights:
        """A row a code of each channel."""
        part = self.part(c)
        return parts.embedding(
            part.whole("vocab_size") * part.whole("num_channels"), self.hidden(c)
        )

    def decoder(self, c: Config) -> Weights:
        """Two attentions, a gated network and three norms a block."""
        part, width, depth = self.part(c), self.hidden(c), self.decoder_depth(c)
        source = part.whole("cross_hidden_size")
        return (
            *parts.repeat(full_attention(self.heads(c), width, bias=False), depth),
            *parts.repeat(
                full_attention(self.cross_heads(c), width, bias=False, source_width=source), depth
            ),
            *parts.repeat(parts.mlp(width, part.whole("intermediate_size")), depth),
            *parts.norm(width, "rms", 3 * depth + 1),
        )

    def encoder(self, c: Config) -> Weights:
        """Bytes of text."""
        part = c.section("encoder_config")
        width, depth = part.whole("hidden_size"), part.layers()
        heads = grouped_heads(part, "num_attention_heads", "num_key_value_heads")
        return (
            *parts.embedding(part.whole("vocab_size"), width),
            *parts.repeat(full_attention(heads, width, bias=False), depth),
            *parts.repeat(parts.mlp(width, part.whole("intermediate_size")), depth),
            *parts.norm(width, "rms", 2 * depth + 1),
        )

    def head(self, c: Config) -> Weights:
        """One projection to the codes of all channels, never tied."""
        part = self.part(c)
        rows = part.whole("vocab_size") * part.whole("num_channels")
        return parts.linear(w.HEAD, self.hidden(c), rows)

    def part(self, c: Config) -> Config:
        """The decoder's section."""
        return c.section("decoder_config")

    def heads(self, c: Config) -> Heads:
        """The decoder's own."""
        return grouped_heads(self.part(c), "num_attention_heads", "num_key_value_heads")

    def cross_heads(self, c: Config) -> Heads:
        """Those over the text."""
        part = self.part(c)
        dim = part.whole("cross_head_dim")
        query = part.whole("cross_num_attention_heads")
        return Heads(query, part.whole("cross_num_key_value_heads"), dim, dim)

    def source_tokens(self, c: Config) -> int | None:
        """The encoder's positions."""
        return c.section("encoder_config").whole("max_position_embeddings")


def grouped_heads(c: Config, query_key: str, kv_key: str) -> Heads:
    """Query heads, KV heads (as many where absent) and the width of one."""
    query = c.whole(query_key)
    dim = c.whole("head_dim", max(1, c.whole("hidden_size") // query))
    return Heads(query, c.whole(kv_key, query), dim, dim)


def attention_weights(
    heads: Heads, width: int, bias: bool, output_bias: bool | None = None
) -> Weights:
    """The projections of one attention."""
    return parts.attention(
        width, heads.query, heads.kv, heads.key_dim, bias=bias, out_bias=output_bias
    )
