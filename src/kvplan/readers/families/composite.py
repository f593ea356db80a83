"""A language model behind encoders of images or sound: its cache is that of the language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core import weights as w
from kvplan.core.errors import UnknownModelType
from kvplan.readers import defaults
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options, Weights
from kvplan.readers.families.registry import family_of, tower_of


class Composite(Family):
    """A text model in one section, towers in others, and what joins them.

    ``text`` and ``towers`` are keys of the config; ``joint`` are the tensors between. Whether the
    head is tied is the enclosing config's to say, unless the text model brings its own head
    (``own_head``). ``text_classes`` are the classes of the type that are the text model alone.
    ``inherits`` is for classes that lay the text section over their own values for it,
    ``lifts_text`` for those that take its keys from their own level too;
    ``older_types`` are names of nested types and those that a class reads them as.
    """

    text: str = "text_config"
    text_type: str = "llama"
    towers: tuple[str, ...] = ("vision_config",)
    text_classes: tuple[str, ...] = ()
    own_head: bool = False
    inherits: bool = False
    lifts_text: bool = False
    older_types: tuple[tuple[str, str], ...] = ()

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The text model's description with the other tensors added."""
        if self.names_text_alone(c):
            return described(self.text_part(c), options)
        text = self.text_section(c)
        found = described(text, options)
        absent = [key for key in self.towers if not c.in_file(key)]
        if absent and self.is_flat_copy(c) and not self.lifts_text:
            return found._replace(left_out=" and no ".join(absent))
        extra: Weights = ()
        uncounted = found.uncounted
        for key in self.towers:
            if not c.names_section(key):
                continue
            section = self.part(c, key)
            tower = self.tower(c, section)
            if tower is None:
                uncounted = self.unknown(section)
            else:
                extra += parts.as_role(tower, w.TOWER)
        extra += parts.as_role(self.joint(c, text), w.PROJECTOR)
        return found._replace(tensors=found.tensors + extra, uncounted=uncounted)

    def names_text_alone(self, c: Config) -> bool:
        """Whether the class that the config names is the text model without the rest."""
        named = c.words("architectures", ())
        return bool(named) and named[0] in self.text_classes

    def text_section(self, c: Config) -> Config:
        """The text model's config, with the enclosing config's word on tying."""
        text = self.text_part(c)
        if self.own_head:
            return text
        return text.with_values(tie_word_embeddings=self.tied(c, text))

    def is_flat_copy(self, c: Config) -> bool:
        """Whether the text model's keys stand at the enclosing level, as in others' tables."""
        return not c.in_file(self.text) and c.in_file("num_hidden_layers")

    def text_part(self, c: Config) -> Config:
        """The text model's config as it stands."""
        section = self.renamed(c.section(self.text, self.text_type, inherits=self.inherits))
        if self.is_flat_copy(c):
            return flattened(c, section.model_type, section.given)
        return section

    def part(self, c: Config, key: str) -> Config:
        """Another nested config."""
        return self.renamed(c.section(key))

    def vision_width(self, c: Config) -> int:
        """The width of the encoder of images."""
        return self.part(c, "vision_config").whole("hidden_size")

    def renamed(self, section: Config) -> Config:
        """A nested config under the name that its type has now."""
        newer = dict(self.older_types).get(section.model_type)
        return section if newer is None else Config(section.raw, newer, section.path)

    def tied(self, c: Config, text: Config) -> bool:
        """Whether the head is the text model's embedding."""
        return c.flag("tie_word_embeddings")

    def tower(self, c: Config, section: Config) -> Weights | None:
        """The tensors of one encoder; None where its shape is not in the config."""
        return encoded(section)

    @staticmethod
    def unknown(section: Config) -> str:
        """Why the parameters of an encoder cannot be counted."""
        named = section.value("architecture", section.model_type)
        return f"the config gives no shape of its {section.path} ({str(named)[:60]})"

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


def encoded(section: Config) -> Weights | None:
    """The tensors of an encoder by its own type; None where its shape is not in the config."""
    tower = tower_of(section.model_type)
    if tower is None:
        raise UnknownModelType(f"The encoder type {section.model_type!r} is not known.")
    found: Weights | None = tower(section)
    return found


def flattened(c: Config, model_type: str, given: Mapping[str, Any] | None = None) -> Config:
    """A text section whose keys stand at the enclosing level: those that are not its own there.

    ``given`` is what the enclosing class gives to the section before the file does.
    """
    own = defaults.of_type(c.model_type).values
    raw = {key: value for key, value in c.raw.items() if key not in own}
    return Config(raw, model_type, c.path, given)
