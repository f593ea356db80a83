"""The release that a question names, within those an engine is modelled for."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kvplan.core.errors import BadValue
from kvplan.core.version import Version


class Release(NamedTuple):
    """A version, as it was written, and what a person should know of it."""

    version: Version
    text: str
    warnings: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def release(engine: str, asked: str | None, oldest: str, newest: str) -> Release:
    """The asked release, or the newest that is modelled.

    Args:
        engine: its name, for the messages.
        asked: what ``--engine-version`` says.
        oldest: the first release whose rules are known.
        newest: the last one; what is newer still is taken to follow its rules.

    Raises:
        BadValue: no version, or one below the range.
    """
    if asked is None:
        return Release(Version.parse(newest), newest)
    found = Version.parse(asked)
    if found < Version.parse(oldest):
        raise BadValue(
            f"{engine} {asked} is older than the releases that are modelled: {oldest} to {newest}."
        )
    if found > Version.parse(newest):
        said = f"{engine} {asked} is not known yet: the rules of {newest} are used."
        return Release(found, asked, (said,))
    return Release(found, asked)
