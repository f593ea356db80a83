"""Qwen Omni: a thinker that sees, hears and writes, and a talker that says what it wrote.

The cache is the thinker's. Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options, Weights
from kvplan.readers.families.composite import Composite, described
from kvplan.readers.families.mixtures import SPARSE
from kvplan.readers.families.qwen import Qwen2, Qwen3, Qwen3VlMoeText
from kvplan.readers.families.vision import projections
from kvplan.readers.towers import speakers


class Thinker(Composite):
    """A text model with encoders that end in its width."""

    towers = ("vision_config", "audio_config")


class Talker2(Qwen2):
    """Rows of the thinker's width in the embedding, and a projection of them.

    models/qwen2_5_omni/modeling_qwen2_5_omni.py, Qwen2_5OmniTalkerForConditionalGeneration.
    """

    def embeddings(self, c: Config) -> Weights:
        """The codes' embedding and the projection to the talker's width."""
        width = c.whole("embedding_size")
        return (*parts.embedding(self.vocab(c), width), *projections(width, self.hidden(c)))

    def tied(self, c: Config) -> bool:
        """Never: the class ties nothing."""
        return False


class Talker3(Qwen3VlMoeText):
    """Experts in every block beside a shared network with a gate (models/qwen3_omni_moe)."""

    shared_width = "shared_expert_intermediate_size"

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Qwen3OmniMoeTalkerDecoderLayer: sparse whatever the step."""
        return [SPARSE] * count

    def shared(self, c: Config) -> Weights:
        """The shared network and the gate of one element."""
        return (*super().shared(c), *parts.linear(w.SCALAR, self.hidden(c), 1))


class CodePredictor(Qwen3):
    """An embedding and a head for each group of codes but the first (models/qwen3_omni_moe)."""

    def embeddings(self, c: Config) -> Weights:
        """One table a group."""
        return parts.repeat(super().embeddings(c), self.groups(c))

    def head(self, c: Config) -> Weights:
        """One matrix a group, never tied."""
        return parts.repeat(parts.linear(w.HEAD, self.hidden(c), self.vocab(c)), self.groups(c))

    @staticmethod
    def groups(c: Config) -> int:
        """Groups that are predicted."""
        return c.whole("num_code_groups") - 1


class Qwen25Omni(Family):
    """Thinker, talker and the maker of waveforms; the latter two can be switched off."""

    thinker_class = "Qwen2_5OmniThinkerForConditionalGeneration"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The thinker's description with the other tensors added."""
        found = described(c.section("thinker_config"), options)
        if c.words("architectures", ())[:1] == [self.thinker_class] or not self.speaks(c):
            return found
        spoken = parts.as_role(self.voice(c), w.CODEC)
        return found._replace(tensors=found.tensors + spoken)

    def speaks(self, c: Config) -> bool:
        """Whether the class builds a talker."""
        return c.flag("enable_audio_output", True)

    def voice(self, c: Config) -> Weights:
        """Qwen2_5OmniForConditionalGeneration.enable_talker."""
        talker = Talker2().describe(c.section("talker_config")).tensors
        return talker + speakers.token2wav(c.section("token2wav_config"))


class Qwen3Omni(Qwen25Omni):
    """The same with experts, and a predictor of the further codes (models/qwen3_omni_moe)."""

    thinker_class = "Qwen3OmniMoeThinkerForConditionalGeneration"

    def speaks(self, c: Config) -> bool:
        """The talker's shared network has no default width: without it there is only a thinker."""
        text = c.section("talker_config").section("text_config")
        return super().speaks(c) and text.has("shared_expert_intermediate_size")

    def voice(self, c: Config) -> Weights:
        """Two projections from the thinker, the talker, the predictor, the maker of waveforms."""
        talker = c.section("talker_config")
        text = talker.section("text_config")
        tied = talker.flag("tie_word_embeddings")
        inner, hidden = text.whole("intermediate_size"), text.whole("hidden_size")
        into = projections(talker.whole("thinker_hidden_size"), inner, hidden)
        return (
            *parts.repeat(into, 2),
            *Talker3().describe(text.with_values(tie_word_embeddings=tied)).tensors,
            *CodePredictor().describe(talker.section("code_predictor_config")).tensors,
            *speakers.code2wav(c.section("code2wav_config")),
        )
