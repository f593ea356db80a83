"""Models with several encoders: Phi-4 Multimodal, Muse, Nemotron Omni.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Decoder, Description, Options, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision import projections
from kvplan.readers.towers import conformer, vit


class Phi4Multimodal(Decoder):
    """A decoder whose embedding holds the encoders of images and of speech.

    models/phi4_multimodal/modeling_phi4_multimodal.py, Phi4MultimodalFeatureEmbedding.
    """

    attention_bias = False
    mlp_bias = False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder, both encoders and their projections."""
        found = super().describe(c, options)
        image, speech = c.section("vision_config"), c.section("audio_config")
        towers = parts.as_role((*vit.siglip(image), *conformer.phi4(speech)), w.TOWER)
        hidden, width = self.hidden(c), image.whole("hidden_size")
        heard = speech.whole("hidden_size") * speech.whole("downsample_rate")
        joint = (
            *projections(width, hidden, hidden),
            *parts.scalar(width, 2),
            *parts.repeat(projections(heard, hidden, hidden), 2),
        )
        return found._replace(tensors=(*found.tensors, *towers, *parts.as_role(joint, w.PROJECTOR)))


class MuseGlimmer(Composite):
    """Two layers without biases, then one (models/muse_glimmer)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """MuseGlimmerVisionAdapter and the projection after it."""
        inner = c.whole("projector_hidden_size")
        out = text.whole("hidden_size")
        return projections(c.whole("out_hidden_size"), inner, inner, out, bias=False)


class MuseSpark(MuseGlimmer):
    """An encoder of waveforms beside that of images (models/muse_spark)."""

    towers = ("vision_config", "audio_config")

    def tied(self, c: Config, text: Config) -> bool:
        """Never: the class ties nothing."""
        return False


class NemotronOmni(Composite):
    """Squares of patches through a norm and two layers, and speech likewise where there is some.

    models/nemotron_h_omni: ``older_sections`` are earlier names of the sections.
    """

    text_type = "nemotron_h"
    towers = ("vision_config", "audio_config")
    own_head = True
    older_sections = (
        ("llm_config", "text_config"),
        ("sound_config", "audio_config"),
        ("vit_hidden_size", "vision_hidden_size"),
    )

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The older names count where the newer are absent."""
        older = {
            newer: c.value(name)
            for name, newer in self.older_sections
            if c.in_file(name) and not c.in_file(newer)
        }
        return super().describe(c.with_values(**older) if older else c, options)

    def part(self, c: Config, key: str) -> Config:
        """Speech comes without biases and scaling unless its section says so."""
        section = super().part(c, key)
        if key != "audio_config" or section.in_file("attention_bias"):
            return section
        return section.with_values(attention_bias=False)

    def joint(self, c: Config, text: Config) -> Weights:
        """NemotronH_Omni_Reasoning_V3MultiModalProjector for either, and the tower's last norm."""
        width, out = c.whole("vision_hidden_size"), text.whole("hidden_size")
        ratio = c.number("downsample_ratio")
        joined = width * (int(1 / ratio) if ratio > 0 else 0) ** 2
        found = parts.norm(joined) + projections(
            joined, c.whole("projector_hidden_size"), out, bias=False
        )
        if text.whole("num_nextn_predict_layers", 0, least=0):
            found += parts.norm(width, "layer")
        if c.names_section("audio_config"):
            found += self.heard(self.part(c, "audio_config"), out)
        return found

    @staticmethod
    def heard(c: Config, out: int) -> Weights:
        """The projector of speech, whose section says how wide it is."""
        width, inner = c.whole("hidden_size"), c.whole("projection_hidden_size")
        return parts.norm(width) + projections(width, inner, out, bias=c.flag("projection_bias"))
