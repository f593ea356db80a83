"""The Gemma models that see and hear.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Options, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.gemma import Gemma4
from kvplan.readers.families.vision import EitherTies


class Gemma3Vision(Composite):
    """SigLIP, average pooling, a norm and one projection."""

    text_type = "gemma3_text"
    text_classes = ("Gemma3ForCausalLM",)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/gemma3/modeling_gemma3.py, Gemma3MultiModalProjector."""
        width = self.vision_width(c)
        return (*parts.norm(width), *parts.linear("", width, text.whole("hidden_size")))


class ShieldGemma2(Gemma3Vision, EitherTies):
    """Gemma 3 as a classifier of images: its head is read at the words yes and no."""


class Gemma3nVision(Composite):
    """A timm encoder of images, a conformer for sound, a vocabulary of tokens for each."""

    text_type = "gemma3n_text"
    text_classes = ("Gemma3nForCausalLM",)
    towers = ("vision_config", "audio_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """models/gemma3n/modeling_gemma3n.py, Gemma3nMultimodalEmbedder."""
        found: Weights = ()
        for key in self.towers:
            section = self.part(c, key)
            width = section.whole("hidden_size")
            found += parts.embedding(section.whole("vocab_size"), width)
            found += parts.norm(width, count=2)
            found += parts.linear("", width, text.whole("hidden_size"))
        return found


class Gemma4Vision(Composite):
    """Encoders of images and sound, each where the file has one, and a projection for each."""

    text_type = "gemma4_text"
    text_classes: tuple[str, ...] = ("Gemma4ForCausalLM",)
    towers: tuple[str, ...] = ("vision_config", "audio_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """models/gemma4/modeling_gemma4.py, Gemma4MultimodalEmbedder: its norm has no scale."""
        hidden = text.whole("hidden_size")
        found: Weights = ()
        for key in self.towers:
            if c.names_section(key):
                width = self.part(c, key).first_whole("output_proj_dims", "hidden_size")
                found += parts.linear("", width, hidden)
        return found


class Gemma4Unified(Composite):
    """Patches and sound enter the text model through projections, without encoders."""

    text_type = "gemma4_unified_text"
    text_classes = ("Gemma4UnifiedForCausalLM",)
    towers = ()

    def joint(self, c: Config, text: Config) -> Weights:
        """models/gemma4_unified/modeling_gemma4_unified.py."""
        hidden = text.whole("hidden_size")
        found: Weights = ()
        if c.names_section("vision_config"):
            found += self.patches(self.part(c, "vision_config"), hidden)
        if c.names_section("audio_config"):
            width = self.part(c, "audio_config").first_whole("output_proj_dims", "audio_embed_dim")
            found += parts.linear("", width, hidden)
        return found

    @staticmethod
    def patches(c: Config, hidden: int) -> Weights:
        """Gemma4UnifiedVisionEmbedder: a patch is a pooled square of the encoder's."""
        side = c.whole("patch_size") * c.whole("pooling_kernel_size")
        patch, width = 3 * side**2, c.whole("mm_embed_dim")
        return (
            *parts.norm(patch, "layer"),
            *parts.linear("", patch, width, bias=True),
            *parts.norm(width, "layer", 2),
            *parts.embedding(2 * c.whole("mm_posemb_size"), width),
            *parts.linear("", c.whole("output_proj_dims"), hidden),
        )


class DiffusionGemmaText(Gemma4):
    """Gemma 4 with experts in every block, full layers without values, nothing shared."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """models/diffusion_gemma/modeling_diffusion_gemma.py, DiffusionGemmaEncoderTextModel."""
        fixed = c.with_values(
            attention_k_eq_v=True,
            enable_moe_block=True,
            hidden_size_per_layer_input=0,
            num_kv_shared_layers=0,
            use_double_wide_mlp=False,
        )
        return super().describe(fixed, options)


class DiffusionGemma(Gemma4Vision):
    """An encoder that keeps the cache and a decoder that fills in a canvas, of the same tensors.

    models/diffusion_gemma/modeling_diffusion_gemma.py, DiffusionGemmaModel: what is tied are the
    weights and scales of the two; biases are each one's own.
    """

    text_type = "diffusion_gemma_text"
    text_classes = ()
    towers = ("vision_config",)

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The encoder, and what the decoder has beside it."""
        found = super().describe(c, options)
        text = self.text_part(c)
        tied = c.flag("tie_word_embeddings")
        beside = (w.TOWER, w.PROJECTOR, w.HEAD)
        own = [t for t in found.tensors if t.role not in beside and (not tied or t.role == w.BIAS)]
        conditioning = (
            *parts.norm(text.whole("hidden_size")),
            *parts.mlp(text.whole("hidden_size"), text.whole("intermediate_size")),
        )
        return found._replace(tensors=(*found.tensors, *own, *conditioning))
