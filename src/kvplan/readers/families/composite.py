"""A language model behind encoders of images or sound: its cache is that of the language model."""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import UnknownModelType
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options, Weights
from kvplan.readers.families.registry import family_of, tower_of


class Composite(Family):
    """A text model in one section, towers in others, and what joins them.

    ``text`` and ``towers`` are keys of the config; ``joint`` are the tensors between. Whether the
    head is tied is the enclosing config's to say.
    """

    text: str = "text_config"
    text_type: str = "llama"
    towers: tuple[str, ...] = ("vision_config",)

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The text model's description with the other tensors added."""
        text = self.text_section(c)
        found = described(text, options)
        extra: Weights = ()
        for key in self.towers:
            if c.names_section(key):
                extra += parts.as_role(self.tower(c, c.section(key)), w.TOWER)
        extra += parts.as_role(self.joint(c, text), w.PROJECTOR)
        return found._replace(tensors=found.tensors + extra)

    def text_section(self, c: Config) -> Config:
        """The text model's config, with the enclosing config's word on tying."""
        text = c.section(self.text, self.text_type)
        if c.has("tie_word_embeddings"):
            return text.with_values(tie_word_embeddings=c.flag("tie_word_embeddings"))
        return text

    def tower(self, c: Config, section: Config) -> Weights:
        """The tensors of one encoder."""
        tower = tower_of(section.model_type)
        if tower is None:
            raise UnknownModelType(f"The encoder type {section.model_type!r} is not known.")
        found: Weights = tower(section)
        return found

    def joint(self, c: Config, text: Config) -> Weights:
        """What stands between the towers and the text model."""
        return ()


def described(c: Config, options: Options = NO_OPTIONS) -> Description:
    """The description of a nested model by its own type."""
    family = family_of(c.model_type)
    if family is None:
        raise UnknownModelType(f"The model type {c.model_type!r} (in {c.path}) is not known.")
    found: Description = family.describe(c, options)
    return found
