"""Gemma 2, 3, 3n, 4 and VaultGemma: windows between full layers, and shared caches.

Classes and files cited are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import SharedCache
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    FULL,
    SLIDING,
    Heads,
    Mixer,
    Weights,
    attention_cache,
)
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.windows import Periodic


class Gemma2(Periodic):
    """Windows on every other layer, the first among them; four norms a block."""

    norms = 4
    mlp_bias = False
    period = 2
    tied_default = True


class VaultGemma(Gemma2):
    """Without the norms behind attention and network."""

    norms = 2


class Gemma3(Periodic):
    """Five windows, then a full layer; norms of queries and keys."""

    norms = 4
    mlp_bias = False
    qk_norm = "head"
    period = 6
    period_key = "sliding_window_pattern"
    tied_default = True

    def window(self, c: Config) -> int | None:
        """Halved and one more where attention is bidirectional.

        models/gemma3/configuration_gemma3.py, __post_init__.
        """
        window = super().window(c)
        if window is not None and c.flag("use_bidirectional_attention"):
            return window // 2 + 1
        return window


class Sharing(Periodic):
    """The last ``num_kv_shared_layers`` layers read the cache of an earlier layer of their kind.

    models/gemma3n/configuration_gemma3n.py, kv_sharing_modes: they keep nothing, and have no
    projections of keys and values.
    """

    norms = 4
    mlp_bias = False
    tied_default = True

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer a kind, and one a kind for the layers that share."""
        count = self.depth(c)
        kinds = self.kinds(c, count)
        own = count - self.num_shared(c, count)
        self.check_sources(kinds[:own], kinds[own:])
        names = kinds[:own] + [f"shared {kind}" for kind in kinds[own:]]
        found: dict[str, Mixer] = {}
        for kind in dict.fromkeys(kinds):
            mixer = self.attention(c, self.window(c) if kind == SLIDING else None)
            found[kind] = mixer
            found[f"shared {kind}"] = self.shared_mixer(c, mixer)
        return Stack.named(names, found)

    def num_shared(self, c: Config, count: int) -> int:
        """How many layers share, no more than there are."""
        return min(count, c.whole("num_kv_shared_layers", 0, least=0))

    def check_sources(self, own: list[str], shared: list[str]) -> None:
        """Every kind that shares has an earlier layer to read.

        Raises:
            BadFile: it has none.
        """
        missing = set(shared) - set(own)
        if own and missing:
            raise BadFile(
                f"The config's num_kv_shared_layers leaves no {min(missing)} layer to share from."
            )

    def shared_mixer(self, c: Config, mixer: Mixer) -> Mixer:
        """The mixer of the same kind that keeps nothing and projects queries alone."""
        cache = mixer.caches[0]
        weights = self.query_weights(c, cache.key_width or 1)
        return Mixer((SharedCache(source=cache.kind),), weights)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Queries with the output, keys, values."""
        return (
            self.query_weights(c, heads.key_dim)
            + self.key_weights(c, heads)
            + self.value_weights(c, heads)
        )

    def query_weights(self, c: Config, dim: int) -> Weights:
        """Query and output projections and the norm of queries."""
        hidden, width = self.hidden(c), c.whole("num_attention_heads") * dim
        bias = c.flag("attention_bias")
        return (
            *parts.linear(w.QUERY, hidden, width, bias),
            *parts.linear(w.OUTPUT, width, hidden, bias),
            *parts.norm(dim),
        )

    def key_weights(self, c: Config, heads: Heads) -> Weights:
        """The key projection and the norm of keys."""
        width = heads.kv * heads.key_dim
        key = parts.linear(w.KEY, self.hidden(c), width, c.flag("attention_bias"))
        return key + parts.norm(heads.key_dim)

    def value_weights(self, c: Config, heads: Heads) -> Weights:
        """The value projection; the norm of values has no scale."""
        width = heads.kv * heads.value_dim
        return parts.linear(w.VALUE, self.hidden(c), width, c.flag("attention_bias"))


class PerLayerInput(Sharing):
    """An embedding of the tokens for every layer, narrow, mixed into its output.

    ``hidden_size_per_layer_input`` is its width; there is none where it is 0.
    """

    def embeddings(self, c: Config) -> Weights:
        """The wide embedding, and the narrow ones side by side with their projection and norm."""
        narrow = self.narrow(c)
        wide = super().embeddings(c)
        if narrow is None:
            return wide
        rows = c.whole("vocab_size_per_layer_input")
        together = self.depth(c) * narrow
        return (
            *wide,
            *parts.embedding(rows, together),
            *parts.linear(w.MLP_IN, self.hidden(c), together),
            *parts.norm(narrow),
        )

    def block_norms(self, c: Config) -> Weights:
        """The norms, and the gate, projection and norm of the narrow input."""
        narrow, hidden = self.narrow(c), self.hidden(c)
        norms = super().block_norms(c)
        if narrow is None:
            return norms
        return (
            *norms,
            *parts.linear(w.MLP_IN, hidden, narrow),
            *parts.linear(w.MLP_OUT, narrow, hidden),
            *parts.norm(hidden),
        )

    def narrow(self, c: Config) -> int | None:
        """Width of the narrow input; None where there is none."""
        return c.whole("hidden_size_per_layer_input", 0, least=0) or None


class Gemma3n(PerLayerInput):
    """Several streams (AltUp), a low-rank detour (LAuReL), widths that may differ by layer."""

    period = 5

    def narrow(self, c: Config) -> int | None:
        """A width of 0 leaves its norm."""
        return c.whole("hidden_size_per_layer_input", least=0)

    def networks(self, c: Config) -> Stack[Weights]:
        """One width for all layers, or a list of them."""
        if not c.is_list("intermediate_size"):
            return super().networks(c)
        widths = c.wholes("intermediate_size", least=1)
        if len(widths) != self.depth(c):
            raise BadFile(
                f"The config's intermediate_size has {len(widths)} widths and num_hidden_layers "
                f"is {self.depth(c)}."
            )
        hidden = self.hidden(c)
        return Stack.of([parts.mlp(hidden, width) for width in widths])

    def block_norms(self, c: Config) -> Weights:
        """models/gemma3n/modeling_gemma3n.py, Gemma3nTextAltUp and Gemma3nTextLaurelBlock."""
        hidden, rank = self.hidden(c), c.whole("laurel_rank")
        inputs = c.whole("altup_num_inputs")
        altup = (
            Weight(w.SCALAR, hidden),
            Weight(w.SCALAR, inputs, inputs),
            Weight(w.SCALAR, inputs**2, inputs),
            Weight(w.ROUTER, inputs, hidden),
            Weight(w.NORM, hidden),
        )
        laurel = (
            *parts.linear(w.MLP_IN, hidden, rank),
            *parts.linear(w.MLP_OUT, rank, hidden),
            *parts.norm(hidden),
        )
        return super().block_norms(c) + altup + laurel

    def embeddings(self, c: Config) -> Weights:
        """Projections into and out of each stream but the first."""
        hidden, streams = self.hidden(c), c.whole("altup_num_inputs") - 1
        return (*super().embeddings(c), Weight(w.MLP_IN, hidden, hidden, 2 * streams))


class Gemma4(PerLayerInput):
    """Full layers have wider heads, and may have other KV heads and values that are the keys.

    models/gemma4/configuration_gemma4.py, __post_init__, and modeling_gemma4.py.
    """

    period = 6

    def kinds(self, c: Config, count: int) -> list[str]:
        """The last layer is full whatever the file says."""
        kinds = super().kinds(c, count)
        return [*kinds[:-1], FULL] if kinds else kinds

    def window(self, c: Config) -> int | None:
        """Halved and one more where all attention is bidirectional."""
        window = super().window(c)
        if window is not None and c.value("use_bidirectional_attention") == "all":
            return window // 2 + 1
        return window

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The sliding layers' attention, or the full ones'."""
        if window is not None:
            return super().attention(c, window)
        heads = self.full_heads(c)
        weights = self.query_weights(c, heads.key_dim) + self.key_weights(c, heads)
        if not c.flag("attention_k_eq_v"):
            weights += self.value_weights(c, heads)
        return Mixer((attention_cache(heads),), weights)

    def full_heads(self, c: Config) -> Heads:
        """The full layers' heads, from a saved file's overrides or from the keys of a new one."""
        query, kv, dim, _ = self.heads(c)
        if c.has("per_layer_config"):
            first = self.kinds(c, self.depth(c)).index(FULL)
            return self.heads(c.at_layer(first))
        if c.flag("attention_k_eq_v"):
            kv = c.whole("num_global_key_value_heads", kv)
        dim = c.whole("global_head_dim", 512)
        return Heads(query, kv, dim, dim)

    def networks(self, c: Config) -> Stack[Weights]:
        """Twice as wide in the sharing layers under ``use_double_wide_mlp``."""
        count = self.depth(c)
        shared = self.num_shared(c, count) if c.flag("use_double_wide_mlp") else 0
        beside = self.mixture(c) if c.flag("enable_moe_block") else ()
        hidden, inner = self.hidden(c), self.inner(c)
        usual = parts.mlp(hidden, inner) + beside
        wide = parts.mlp(hidden, 2 * inner) + beside
        return Stack((usual, wide), (0,) * (count - shared) + (1,) * shared)

    def mixture(self, c: Config) -> Weights:
        """Experts beside the network: Gemma4TextRouter, Gemma4TextExperts and three norms."""
        hidden, count = self.hidden(c), c.whole("num_experts")
        routed = parts.experts(
            hidden, c.whole("moe_intermediate_size"), count, c.whole("top_k_experts")
        )
        return (*routed, Weight(w.SCALAR, hidden + count), *parts.norm(hidden, count=3))


class Gemma4Assistant(Composite):
    """A draft model: a small Gemma 4 whose every layer reads the cache of the model it drafts for.

    models/gemma4_assistant/configuration_gemma4_assistant.py and modeling_gemma4_assistant.py.
    """

    text_type = "gemma4_text"
    towers = ()

    def text_part(self, c: Config) -> Config:
        """The text model with all layers shared, unless it says how many."""
        text = super().text_part(c)
        if text.whole("num_kv_shared_layers", 0, least=0):
            return text
        return text.with_values(num_kv_shared_layers=text.layers())

    def joint(self, c: Config, text: Config) -> Weights:
        """Projections from and to the target, and the centroids of an ordered embedding."""
        hidden, target = text.whole("hidden_size"), c.whole("backbone_hidden_size")
        projections = (
            *parts.linear(w.PROJECTOR, 2 * target, hidden),
            *parts.linear(w.PROJECTOR, hidden, target),
        )
        if not c.flag("use_ordered_embeddings"):
            return projections
        return projections + parts.linear(w.HEAD, hidden, c.whole("num_centroids"))


class Gemma4UnifiedAssistant(Gemma4Assistant):
    """The same beside the unified model."""

    text_type = "gemma4_unified_text"
