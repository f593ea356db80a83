"""``kvplan.toml``: what a person would otherwise say with each question.

    engine = "sglang"                    gpu = "h100-sxm-80gb"
    currency = "EUR"                     exchange-rate = 0.92     (of the currency for a dollar)
    [cards.NAME]                         prices, and cards of one's own: ``own_cards``

One file is read, the first that there is: the one that is named, of ``KVPLAN_CONFIG``, of this
folder or one above it up to the root of its project (where ``.git`` is), of the person. It names no
other file and no address. Functions of the package never look for it: only the command and the page
do, which say what they took of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kvplan.core.device import Device
from kvplan.core.errors import BadFile
from kvplan.core.units import USD, parse_currency
from kvplan.readers.json_text import read_bounded

if TYPE_CHECKING:
    from kvplan.readers.toml_text import Keys

NAME: Final = "kvplan.toml"
VARIABLE: Final = "KVPLAN_CONFIG"
ROOT: Final = ".git"  # a folder of a clone, a file of a worktree
KEYS: Final = ("engine", "gpu", "currency", "exchange-rate", "cards")


class Value(NamedTuple):
    """A value, and the file and key it is from: ``kvplan.toml: engine``."""

    value: str | float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a file says; ``values`` are by keyword (``exchange_rate``)."""

    file: str
    values: Mapping[str, Value] = field(default_factory=dict)
    cards: tuple[Device, ...] = ()


_IN_USE: ContextVar[Settings | None] = ContextVar("settings", default=None)


@contextmanager
def use(settings: Settings | None) -> Iterator[None]:
    """Within it ``in_use`` has them, and the cards are known by their names."""
    if settings is None:
        yield
        return
    from kvplan.readers.devices import with_own

    token = _IN_USE.set(settings)
    try:
        with with_own(settings.cards):
            yield
    finally:
        _IN_USE.reset(token)


def in_use() -> Settings | None:
    """The settings of ``use``; None outside it."""
    return _IN_USE.get()


def open_settings(named: str | None = None, *, by_name: bool = False) -> Settings | None:
    """The settings of the file that counts; None where there is none.

    Answers call the file by its path, or with ``by_name`` without its folders: for whoever reads
    them on another machine.

    Raises:
        BadFile: a file that cannot be what it says.
        SourceUnreachable: it cannot be read, or the one that is named is not there.
    """
    found = _find(named or os.environ.get(VARIABLE))
    if found is None:
        return None
    path, shown = found
    return read_settings(path, path.name if by_name else shown)


def _find(named: str | None) -> tuple[Path, str] | None:
    """The file that counts, and what it is called from here."""
    if named:
        return Path(os.path.expanduser(named)), named
    here = _folder()
    for folder in _of_project(here) if here else ():
        if _exists(folder / NAME):
            return folder / NAME, os.path.relpath(folder / NAME, here)
    mine = _of_person()
    return (mine, _short(mine)) if _exists(mine) else None


def read_settings(path: Path, file: str) -> Settings:
    """What a file says; ``file`` names it in sources and messages.

    Raises:
        BadFile: not TOML, a key that is not known, or a value that cannot be.
        SourceUnreachable: it cannot be read.
    """
    from kvplan.readers.toml_text import MAX_BYTES, Keys, read_toml

    keys = Keys(read_toml(read_bounded(path, MAX_BYTES), file), file)
    keys.only(KEYS)
    engine, gpu = keys.text("engine"), keys.text("gpu")
    currency = keys.read("currency", lambda text: parse_currency(text, "The text"))
    rate = keys.number("exchange-rate", above=0)
    if rate is not None and currency is None:
        raise BadFile(
            f"{keys.source('exchange-rate')} is of a currency, and none is named.",
            'As in currency = "EUR".',
        )
    if rate not in (None, 1.0) and currency == USD:
        raise BadFile(f"{keys.source('exchange-rate')} is of USD for a dollar, which is 1.")
    found = {"engine": engine, "gpu": gpu, "currency": currency, "exchange_rate": rate}
    return Settings(
        file=file,
        values={
            name: Value(value, keys.source(name.replace("_", "-")))
            for name, value in found.items()
            if value is not None
        },
        cards=_cards(keys.within("cards"), currency, rate),
    )


def _cards(tables: Keys, currency: str | None, rate: float | None) -> tuple[Device, ...]:
    """The table of devices is read where there are cards alone."""
    if not tables.table:
        return ()
    from kvplan.readers.own_cards import Money, read_cards

    return read_cards(tables, Money(currency or USD, rate))


def _folder() -> Path | None:
    """The current folder; None where it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _of_project(here: Path) -> list[Path]:
    """The folder and those above it up to the project's root; outside of one the folder alone."""
    folders = [here, *here.parents]
    for place, folder in enumerate(folders):
        if _exists(folder / ROOT):
            return folders[: place + 1]
    return [here]


def _of_person() -> Path:
    """The file in the platform's folder of settings, by the XDG rules (absolute paths alone)."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~/.config"))
    return folder / "kvplan" / NAME


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _short(path: Path) -> str:
    """A path of the person, with ~ for their folder."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text
