"""Versions of engines, and rules that hold from one release until another.

A development or candidate build is decided as the release before it: a rule that a release brought
may or may not have been in the builds on the way there.

    Version.parse("0.20.1.dev12") < Version.parse("0.20.1")
    Version.parse("b8133")         llama.cpp's builds are whole numbers
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from kvplan.core.errors import BadValue

T = TypeVar("T")

_VERSION = re.compile(
    r"[vb]?(\d{1,9}(?:\.\d{1,9}){0,4})(?:\.?(post)\d*)?([-.+_]?(?:rc|a|b|alpha|beta|dev|pre)[\w.+-]*)?"
    r"(?:\+[\w.]*)?"
)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release's numbers; ``final`` is 0 for a build on the way to it and 1 for itself."""

    numbers: tuple[int, ...]
    final: int = 1

    @classmethod
    def parse(cls, text: str) -> Version:
        """``0.19.1``, ``v0.20.1rc0``, ``0.4.3.post2``, ``b8133``.

        Raises:
            BadValue: not a version.
        """
        return _parsed(text)

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers)) + ("" if self.final else " (pre-release)")


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Version:
    match = _VERSION.fullmatch(text.strip()) if len(text) <= 80 else None
    if match is None:
        raise BadValue(f"{text[:80]!r} is not a version.", "Write it like 0.19.1 or b8133.")
    numbers = tuple(int(part) for part in match[1].split("."))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return Version(numbers, 0 if match[3] else 1)


@dataclass(frozen=True, slots=True)
class ByVersion(Generic[T]):
    """A value that changed between releases: ``((since, value), …)``, oldest first.

    The first entry's ``since`` is the oldest version that is modelled.
    """

    changes: tuple[tuple[str, T], ...]

    def at(self, version: Version) -> T:
        """The value that a version has; that of the oldest for what is older still."""
        found = self.changes[0][1]
        for since, value in self.changes[1:]:
            if version >= Version.parse(since):
                found = value
        return found
