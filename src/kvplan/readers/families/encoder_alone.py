"""Encoders without a decoder: they read a text at once, so nothing is kept for a later token."""

from __future__ import annotations

from kvplan.core.layers import NoCache
from kvplan.core.model import Block
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families.base import Description

NOTHING_KEPT: Block = (NoCache(),)


def keeping_nothing(depth: int) -> Stack[Block]:
    """Blocks of an encoder."""
    return Stack.uniform(NOTHING_KEPT, depth)


def reason(name: str) -> str:
    """Why nothing is kept."""
    return f"{name} is an encoder: it reads a text at once and keeps no cache."


def as_encoder(found: Description, name: str, *said: str) -> Description:
    """A description of the class ``name`` whose blocks keep nothing."""
    blocks = keeping_nothing(len(found.blocks))
    return found._replace(blocks=blocks, said=(*found.said, reason(name), *said))


def named_class(c: Config) -> str:
    """The class that the config names first, or an empty text."""
    named = c.words("architectures", ())
    return named[0] if named else ""
