"""The models that ship with the package, by every name people use for them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kvplan.core.errors import UnknownName
from kvplan.core.weights import Weights

# A number of billions that is neither a mixture's active part (A3B) nor one of several experts.
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,2})?)[bB](?![A-Za-z0-9])")
# Words that say how a model was trained, stored or dated, or how large its only size is.
_NEUTRAL = re.compile(
    r"hf|it|pt|sft|chat|base|instruct|preview|think(ing)?|bf16|v\d+(\.\d+)*|\d{4}|\d+[ke]|"
    r"a?\d+(\.\d+)?b|\d+x\d+b"
)
ANSWERED = " is answered with the shapes of "  # as tools/build_catalogue.py writes it
FAR = 1.35  # a name rounds: gemma-2-2b has 2.61 billion


class Entry(NamedTuple):
    """A model of the catalogue: its id, its file, where that is from and how good a copy it is."""

    id: str
    file: str
    model_type: str
    quality: str
    source: str


class Found(NamedTuple):
    """An entry by some name; ``warning`` says where the name is not quite the entry's own."""

    entry: Entry
    warning: str


def fold(name: str) -> str:
    """A name without case and punctuation; dots stay, they tell 3.1 from 31."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


@cache
def _index() -> dict[str, Any]:
    text = files("kvplan").joinpath("data/models/index.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def entries() -> tuple[Entry, ...]:
    """Every model of the catalogue."""
    return tuple(
        Entry(row["id"], row["file"], row["model_type"], row["quality"], row["source"])
        for row in _index()["models"]
    )


@cache
def _names() -> dict[str, list[Any]]:
    """Every name with the place of its model and a warning; made by tools/build_catalogue.py."""
    found: dict[str, list[Any]] = _index()["names"]
    return found


def _found(row: list[Any]) -> Found:
    place, warning = row
    return Found(entries()[place], warning)


@cache
def _compact_names() -> dict[str, list[Any]]:
    """The names without any punctuation but dots: ``llama3.1:8b`` for ``llama-3.1-8b``."""
    compact: dict[str, list[Any]] = {}
    for name, row in _names().items():
        compact.setdefault(name.replace("-", ""), row)
    return compact


def _by_beginning(asked: str) -> Found | None:
    """The one model whose name goes on with words that leave its shapes alone, if it is one."""
    compact = asked.replace("-", "")
    longer = {name: rest for name in _names() if (rest := _words_after(compact, name))}
    shortest = min(longer, key=lambda name: len(longer[name]), default="")
    words = longer.get(shortest, [])
    one = all(rest[: len(words)] == words for rest in longer.values())
    if not words or not one or not all(map(_NEUTRAL.fullmatch, words)):
        return None
    entry = _found(_names()[shortest]).entry
    return Found(entry, f"{asked} is answered with {entry.id}.")


def _words_after(compact: str, name: str) -> list[str]:
    """The words of a name after its beginning, in whatever way that is broken into words."""
    words = name.split("-")
    begun = ""
    for place, word in enumerate(words):
        begun += word
        if begun == compact:
            return words[place + 1 :]
        if not compact.startswith(begun):
            break
    return []


def find(name: str) -> Found | None:
    """The model of a name, in any case and punctuation, or None."""
    if len(name) > 200:
        return None
    asked = fold(name)
    row = _names().get(asked) or _compact_names().get(asked.replace("-", ""))
    return _found(row) if row is not None else _by_beginning(asked)


def near(name: str, count: int = 3) -> list[str]:
    """The names most like one that is not known."""
    asked = fold(name[:100]).rpartition("/")[2]
    ids = {fold(entry.id.rpartition("/")[2]): entry.id for entry in entries()}
    compact = asked.replace("-", "")
    begun = [key for key in ids if compact and key.replace("-", "").startswith(compact)]
    close = difflib.get_close_matches(asked, ids, n=count, cutoff=0.6)
    inside = [key for key in ids if asked and asked in key]
    found = dict.fromkeys([*sorted(begun, key=len), *close, *sorted(inside, key=len)])
    return [ids[key] for key in found][:count]


def search(word: str = "") -> list[Entry]:
    """The models whose id or type has a word in it; all without one."""
    asked = fold(word)
    return [entry for entry in entries() if asked in fold(f"{entry.id} {entry.model_type}")]


def config_of(entry: Entry) -> dict[str, Any]:
    """The config of a model as it was published."""
    text = files("kvplan").joinpath(f"data/models/{entry.file}").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    found.setdefault("model_type", entry.model_type)
    return found


def answered() -> Iterator[tuple[str, Entry]]:
    """Published names whose shapes are those of another model's entry: copies, mostly."""
    for place, warning in _names().values():
        name, said, _ = str(warning).partition(ANSWERED)
        if said and "/" in name and " " not in name:
            yield name, entries()[place]


def contradicts(entry: Entry, weights: Weights | None) -> bool:
    """Whether a copy's parameters are far from the number in its model's name (``…-3B-…``)."""
    named = [float(size) for size in _BILLIONS.findall(entry.id.rpartition("/")[2])]
    if weights is None or not named:
        return False
    ratios = [weights.parameters / (size * 1e9) for size in named]
    return not any(1 / FAR < ratio < FAR for ratio in ratios)


def unknown(name: str, hint: str) -> UnknownName:
    """The error for a name that is not here."""
    return UnknownName("model", name[:100], near(name), hint)
