"""BLIP, BLIP-2, InstructBLIP and GIT: BERT's blocks that read images, or queries that do.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Decoder, Description, Mixer, Options, Weights
from kvplan.readers.families.bert import Bert, BertGeneration
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.grok import Grok
from kvplan.readers.families.vision import EitherTies
from kvplan.readers.towers.blip import qformer, reading
from kvplan.readers.towers.clip import clip


class BlipText(Bert):
    """BERT without segments; as a decoder every block reads the image's patches.

    The cache over the patches counts where the asker says how many there are.
    """

    pooler = False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """``is_decoder`` is what adds the cross-attention."""
        return super().describe(c.with_values(add_cross_attention=c.flag("is_decoder")), options)

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """models/blip/modeling_blip_text.py, BlipTextLayer: keys of the image's width."""
        own = Decoder.attention(self, c, window)
        if not c.flag("add_cross_attention"):
            return own
        width = self.hidden(c)
        cross = (*reading(width, c.whole("encoder_hidden_size")), *parts.norm(width, "layer"))
        return Mixer(own.caches, own.weights + cross)

    def embeddings(self, c: Config) -> Weights:
        """BlipTextEmbeddings."""
        words = parts.embedding(self.vocab(c), self.hidden(c))
        return words + self.positions(c) + parts.norm(self.hidden(c), "layer")


class Blip(EitherTies):
    """A vision transformer, and a text decoder that reads all of its patches."""

    text_type = "blip_text_model"

    def text_section(self, c: Config) -> Config:
        """The width that is read is the image's (BlipConfig, __post_init__)."""
        width = self.vision_width(c)
        return super().text_section(c).with_values(encoder_hidden_size=width)


class Blip2(Composite):
    """A Q-Former between the image and any language model, which brings its own head."""

    text_type = "opt"
    own_head = True

    def joint(self, c: Config, text: Config) -> Weights:
        """models/blip_2/modeling_blip_2.py, Blip2ForConditionalGeneration."""
        own = self.part(c, "qformer_config")
        width = own.whole("hidden_size")
        return (
            *parts.scalar(c.whole("num_query_tokens") * width),
            *self.queries(own, self.vision_width(c)),
            *parts.linear("", width, text.whole("hidden_size"), bias=True),
        )

    def queries(self, c: Config, source: int) -> Weights:
        """The Q-Former, whose text input is a switch."""
        return qformer(c, source, words=c.flag("use_qformer_text_input"))


class InstructBlip(Blip2):
    """The Q-Former also reads the instruction."""

    def queries(self, c: Config, source: int) -> Weights:
        """models/instructblip/modeling_instructblip.py, InstructBlipQFormerModel."""
        width = c.whole("hidden_size")
        return (
            *parts.embedding(c.whole("vocab_size"), width),
            *parts.embedding(c.whole("max_position_embeddings"), width),
            *qformer(c, source, words=True),
        )


class Git(BertGeneration):
    """BERT's blocks over the image's patches and the words in one sequence."""

    tied_default = False
    head_bias = True

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """Grok 2's published file names this type beside a class of its own."""
        if "Grok1ForCausalLM" in c.words("architectures", ()):
            return Grok().describe(Config(c.raw, "grok", c.path), options)
        return super().describe(c, options)

    def embeddings(self, c: Config) -> Weights:
        """models/git/modeling_git.py, GitModel: words, CLIP's encoder and a projection."""
        vision = c.section("vision_config")
        width, hidden = vision.whole("hidden_size"), self.hidden(c)
        frames = c.whole("num_image_with_embedding", 0, least=0)
        return (
            *super().embeddings(c),
            *parts.as_role(clip(vision), w.TOWER),
            *parts.linear(w.PROJECTOR, width, hidden, bias=True),
            *parts.norm(hidden, "layer"),
            *parts.scalar(width, frames),
        )

    def head(self, c: Config) -> Weights:
        """One projection with a bias."""
        return Decoder.head(self, c)
