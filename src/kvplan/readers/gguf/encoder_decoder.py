"""Encoder-decoders in GGUF files: T5."""

from __future__ import annotations

from kvplan.core.cross import CrossAttention
from kvplan.core.layers import FullAttention
from kvplan.core.model import Block
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.gguf.attention import Architecture
from kvplan.readers.gguf.metadata import Metadata


class T5(Architecture):
    """Every block of the decoder attends to itself and to the encoder.

    ``decoder_block_count`` is absent where both sides are equally deep (llama.cpp, May 2026,
    src/llama-model.cpp, load_hparams). The encoder's length is the asker's, else the file's
    context.
    """

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.encoder_tokens = options.encoder_tokens or m.whole("context_length")
        self.decoder_count = m.layers("decoder_block_count", self.count)

    def blocks(self) -> list[Block]:
        """The decoder's blocks."""
        query, kv, key, value = self.shape(0) if self.count else (1, 1, 1, 1)
        block: Block = (
            FullAttention(kv_heads=kv, key_dim=key, value_dim=value, query_heads=query),
            CrossAttention(
                kv_heads=kv, key_dim=key, value_dim=value, encoder_tokens=self.encoder_tokens or 0
            ),
        )
        return [block] * self.decoder_count
