"""Dory: a middle section run several times, each time with caches of its own.

models/dory/configuration_dory.py and modeling_dory.py of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Description,
    Heads,
    Mixer,
    Options,
    Weights,
)
from kvplan.readers.families.windows import Gated, Periodic

SECTIONS = ("num_hidden_layers", "n_input_layers", "n_output_layers", "n_recurrent_layers")


class Dory(Gated, Periodic):
    """Norms without parameters; scales on queries, gates, networks and logits instead."""

    norm = "none"
    period = 4

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """A saved file counts attention and network apart, as layers of their own: halve it."""
        if "mlp" in c.words("layer_types", ()):
            halves: dict[str, object] = {key: c.whole(key) // 2 for key in SECTIONS if c.has(key)}
            c = c.with_values(layer_types=c.words("layer_types")[::2], **halves)
        return super().describe(c, options)

    def mixers(self, c: Config) -> Stack[Mixer]:
        """A block of the middle section keeps a cache for each of its runs."""
        mixers = super().mixers(c)
        kept = self.kept_copies(c, len(mixers))
        repeated = [
            Mixer(mixer.caches * copies, mixer.weights)
            for mixer, copies in zip(mixers, kept, strict=True)
        ]
        return Stack.of(repeated)

    def kept_copies(self, c: Config, count: int) -> list[int]:
        """Caches of each block: one, a run's worth in the middle, none where it is never run."""
        first, last = c.whole("n_input_layers", least=0), c.whole("n_output_layers", least=0)
        between = count - first - last
        if between < 0:
            raise BadFile(
                f"The config's n_input_layers and n_output_layers are {first + last} together and "
                f"num_hidden_layers is {count}."
            )
        middle = min(between, c.whole("n_recurrent_layers", between, least=0))
        runs = c.layers("n_recurrent_loops")
        if c.text("recurrent_kv_cache_mode") == "last_loop":
            runs = min(runs, 1)
        return [1] * first + [runs] * middle + [0] * (between - middle) + [1] * last

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections, and scales of the queries' width: of queries with keys, and of gates."""
        scales = Weight(w.SCALAR, heads.query * heads.key_dim, 1, 2)
        return (*super().attention_weights(c, heads), scales)

    def network(self, c: Config) -> Weights:
        """Scales of the inner width for gate and up."""
        return (*super().network(c), Weight(w.SCALAR, self.inner(c), 1, 2))

    def block_norms(self, c: Config) -> Weights:
        """A mixing coefficient for each feature, behind attention and behind the network."""
        return parts.scalar(self.hidden(c), 2)

    def head(self, c: Config) -> Weights:
        """The projection and a scale for each logit."""
        return super().head(c) + parts.scalar(self.vocab(c))
