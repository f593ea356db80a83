"""Which layers of a GGUF file keep keys and values, how wide, and over how many tokens.

An ``Architecture`` is one file's model as llama.cpp loads it; a subclass says what an architecture
does otherwise. Rules are those of llama.cpp (May 2026): src/llama-model.cpp, load_hparams and
create_memory, with src/llama-hparams.cpp. A window keeps what transformers keeps of it; the cells
that llama.cpp allocates are its engine's to say.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile, UnknownModelType
from kvplan.core.layers import ChunkedAttention, Layer, NoCache, SharedCache
from kvplan.core.model import Block, Confidence
from kvplan.readers.families.base import NO_OPTIONS, Heads, Options, attention_cache
from kvplan.readers.gguf.metadata import Metadata

# Prefixes of keys that speak of a cache other than keys and values of every token.
OTHER_CACHES = (
    "ssm.", "wkv.", "shortconv.", "kda.", "token_shift", "time_mix", "attention.kv_lora_rank",
    "attention.key_length_mla", "attention.indexer.", "attention.compress", "attention.shared_kv",
    "attention.cross", "full_attention_interval", "decoder_block_count", "hyper_connection",
)  # fmt: skip


class Architecture:
    """Attention over every token in every layer, with as many heads as the file says for each."""

    confidence: Confidence = "verified"

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        self.m = m
        self.options = options
        self.warnings: list[str] = []
        self.count = m.layers("block_count")
        self.drafts = m.layers("nextn_predict_layers", 0)
        if self.drafts > self.count:
            raise BadFile(f"{m.file} has {self.count} blocks, {self.drafts} of them for drafting.")
        self.heads = self.each("attention.head_count", [0] * self.count)
        self.kv_heads = self.each("attention.head_count_kv", self.heads)
        self.encoder_tokens: int | None = None

    def blocks(self) -> list[Block]:
        """Every block; those that draft (multi-token prediction) keep nothing in the main cache."""
        own = self.count - self.drafts
        idle: Block = (NoCache(note="multi-token prediction"),)
        return [self.block(place) for place in range(own)] + [idle] * self.drafts

    def each(self, key: str, default: list[int] | None = None) -> list[int]:
        """One number a block; an array may leave the blocks that draft away."""
        found = self.m.value(key)
        own = self.count - self.drafts
        if self.drafts and isinstance(found, tuple) and len(found) == own:
            return self.m.per_layer(key, own) + [0] * self.drafts
        return self.m.per_layer(key, self.count, default)

    def block(self, place: int) -> Block:
        """What one block keeps."""
        return (self.cache(place),)

    def cache(self, place: int) -> Layer:
        """The attention of one block; nothing where it has no KV heads."""
        if not self.kv_heads[place]:
            return NoCache()
        return self.attention(place)

    def attention(self, place: int) -> Layer:
        """Keys and values of every token."""
        return attention_cache(self.shape(place))

    def shape(self, place: int, ending: str = "") -> Heads:
        """Heads of one block and their widths; ``ending`` is ``_swa`` for those of windows."""
        return Heads(
            self.heads[place] or self.kv_heads[place],
            self.kv_heads[place],
            self.width("key", ending),
            self.width("value", ending),
        )

    def width(self, of: str, ending: str = "") -> int:
        """Elements of one head: as the file says, else the model's width by its heads."""
        key = f"attention.{of}_length"
        if ending and self.m.has(key + ending):
            return self.m.whole(key + ending)
        if self.m.has(key):
            return self.m.whole(key)
        return max(1, self.m.whole("embedding_length") // (max(self.heads, default=0) or 1))


class NoAttentionCache(Architecture):
    """Encoders and diffusion models: llama.cpp gives them no cache (create_memory)."""

    def block(self, place: int) -> Block:
        """Nothing."""
        return (NoCache(note="not autoregressive"),)


class Windowed(Architecture):
    """Windows on some layers.

    The file's ``sliding_window_pattern`` is true or false for each layer, or a period; where it is
    absent llama.cpp has the architecture's ``period``: the last layer of each is full, or the first
    with ``full_first``. A ``window`` is what llama.cpp takes where the file has none.
    """

    period: int | None = None
    full_first: bool = False
    window: int = 0

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.size = m.whole("attention.sliding_window", self.window, least=0)
        self.windows = self.pattern() if self.size else [0] * self.count

    def pattern(self) -> list[int]:
        """For each layer whether it has a window."""
        key, count = "attention.sliding_window_pattern", self.count
        if isinstance(self.m.value(key), tuple):
            return self.each(key)
        if self.period is None and not self.m.has(key):
            raise BadFile(f"{self.m.file} has windows and no {self.m.key(key)}.")
        period = self.m.whole(key, self.period or 0, least=0)
        if not period:
            return [1] * count
        full = 0 if self.full_first else period - 1
        return [int(place % period != full) for place in range(count)]

    def attention(self, place: int) -> Layer:
        """Keys and values of every token or of the window, each with its own widths."""
        if self.windows[place]:
            return attention_cache(self.shape(place, "_swa"), self.size)
        return super().attention(place)


class Chunked(Windowed):
    """Attention within chunks of 8,192 tokens: Llama 4. A 0 in the file switches them off."""

    period = 4
    chunk = 8192
    window = 8192

    def attention(self, place: int) -> Layer:
        """A chunk where a window would be."""
        if not self.windows[place]:
            return super().attention(place)
        shape = self.shape(place)
        return ChunkedAttention(
            kv_heads=shape.kv,
            key_dim=shape.key_dim,
            value_dim=shape.value_dim,
            query_heads=shape.query,
            size=self.chunk,
        )


class Sharing(Windowed):
    """The last layers read the caches of earlier ones: Gemma 4's ``shared_kv_layers``."""

    def owners(self) -> int:
        """Layers that keep a cache of their own, from the first on."""
        shared = self.m.layers("attention.shared_kv_layers", 0)
        if shared >= max(1, self.count):
            raise BadFile(
                f"{self.m.file} has {self.count} blocks, and {shared} of them share a cache."
            )
        return self.count - shared

    def block(self, place: int) -> Block:
        """A cache, or the name of the kind that is read."""
        if place < self.owners():
            return super().block(place)
        return (SharedCache(source="sliding_window" if self.windows[place] else "full_attention"),)


class Gemma3n(Sharing):
    """The first 20 layers own their caches, whatever the file says (load_hparams)."""

    period = 5

    def owners(self) -> int:
        """Twenty."""
        return 20


class Gemma2(Windowed):
    """Every other layer full."""

    period = 2
    window = 4096


class Gemma3(Windowed):
    """Every sixth layer full."""

    period = 6


class MimoV2(Windowed):
    """The window does not count the token itself (transformers 5.24.0,
    models/mimo_v2_flash/configuration_mimo_v2_flash.py: ``sliding_window_size`` and one).
    """

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.size += 1


class EverySecond(Windowed):
    """Every second layer full: gpt-oss."""

    period = 2


class EveryFourth(Windowed):
    """Every fourth layer full: Command R7B, OLMo 3, EXAONE 4, AFMoE."""

    period = 4


class EveryFourthFromFirst(EveryFourth):
    """The first of each four layers full: SmallThinker, Laguna."""

    full_first = True


class PeriodFromFirst(Windowed):
    """The file has the pattern; where it is a period the first layer of each is full: Cohere 2 MoE
    (src/models/cohere2moe.cpp, June 2026).
    """

    full_first = True


class EveryEighth(Windowed):
    """Every eighth layer full: PLaMo 3."""

    period = 8


class WindowSwitchedOff(Architecture):
    """Phi 3: the window in the file is not used."""

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        size = m.whole("attention.sliding_window", 0, least=0)
        if size:
            self.warnings.append(
                f"The file names a window of {size:,} tokens. llama.cpp does not use it for "
                f"{m.architecture}, so every layer is counted as full attention."
            )


class Unknown(WindowSwitchedOff):
    """An architecture that is not known: answered where its keys are those of full attention.

    Raises:
        UnknownModelType: keys speak of another kind of cache, or the conventional ones are absent.
    """

    confidence = "assumed"

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        suspects = [key for key in m.own_keys() if key.startswith(OTHER_CACHES)]
        if suspects:
            raise UnknownModelType(
                f"The architecture {m.architecture!r} of {m.file} is not known, and its metadata "
                f"speaks of another kind of cache: {', '.join(sorted(suspects)[:8])}."
            )
        needed = ("block_count", "attention.head_count", "embedding_length")
        missing = [key for key in needed if not m.has(key)]
        if missing:
            raise UnknownModelType(
                f"The architecture {m.architecture!r} of {m.file} is not known, and it has no "
                f"{' and no '.join(missing)}."
            )
        super().__init__(m, options)
        self.warnings.append(
            f"The architecture {m.architecture!r} is not known. Assumed: full attention in every "
            "layer, with the heads and widths that the file names."
        )
