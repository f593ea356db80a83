"""Which GGUF of a repository is meant.

    name-Q4_K_M.gguf                            one file a quantisation
    Q4_K_M/name-Q4_K_M-00001-of-00003.gguf      or several, in a folder
    mmproj-F16.gguf, imatrix.gguf               no models

Without a quantisation llama.cpp takes Q4_K_M (common/download.cpp, 2026); so does this and
says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kvplan.core.errors import BadFile, BadValue, UnknownName

DEFAULT = "Q4_K_M"
NO_MODELS = ("mmproj", "imatrix", "-vocab.")
DYNAMIC = "UD-"  # a second recipe of the same type, in files of its own
MOST_SHOWN = 12
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")
_QUANT = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d[A-Z0-9_]*|[BF]?F16|F32|FP16|TQ\d_\d|MXFP4\w*|NVFP4))"
    r"(?:-\d{5}-of-\d{5})?\.gguf$",
    re.IGNORECASE,
)


class Choice(NamedTuple):
    """A file, and what is to be said about how it came to be chosen."""

    file: str
    warning: str = ""


def choose(repo: str, names: Iterable[str], quant: str) -> Choice:
    """The first file of the GGUF of a quantisation, or of the only one.

    Raises:
        BadFile: the repository has none.
        UnknownName: none of that quantisation, with those there are.
        BadValue: several, and nothing tells them apart.
    """
    files = [name for name in names if _is_model(name)]
    if not files:
        raise BadFile(f"{repo} has no .gguf file of a model.")
    if quant:
        return Choice(_only(repo, _of(files, quant), quant) or _none(repo, files, quant))
    if len(files) == 1:
        return Choice(files[0])
    found = _only(repo, _of(files, DEFAULT), DEFAULT)
    if found is None:
        raise BadValue(f"{repo} has {len(files)} GGUF files.", _which(repo, files))
    return Choice(found, f"{repo} has {len(files)} GGUF files; {found} is answered ({DEFAULT}).")


def _is_model(name: str) -> bool:
    """Whether a name is that of a model's only or first file."""
    part = _PART.search(name)
    return (
        name.endswith(".gguf")
        and not any(word in name.casefold() for word in NO_MODELS)
        and (part is None or int(part[1]) == 1)
    )


def _of(files: list[str], quant: str) -> list[str]:
    """The files that a quantisation names, those of a second recipe only where they are named."""
    wanted = quant.upper()
    plain = [name for name in files if _quant(name) == wanted]
    return plain or [name for name in files if _quant(name) == DYNAMIC + wanted]


def _quant(name: str) -> str:
    """The quantisation that a file name ends in, in capitals, or an empty text."""
    found = _QUANT.search(name)
    return found[1].upper() if found else ""


def _only(repo: str, files: list[str], quant: str) -> str | None:
    """The one file, or None where there is none."""
    if len(files) > 1:
        raise BadValue(f"{repo} has {len(files)} files of {quant}.", _which(repo, files))
    return files[0] if files else None


def _none(repo: str, files: list[str], quant: str) -> str:
    raise UnknownName(f"quantisation of {repo}", quant, hint=_which(repo, files))


def _which(repo: str, files: list[str]) -> str:
    """How to name one of several."""
    quants = sorted(set(map(_quant, files)) - {""})
    if len(quants) == len(files):
        return f"Write {repo}:{quants[0]}, or one of {_listed(quants)}."
    return f"Write {repo}/{files[0]}, or one of {_listed(files)}."


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - MOST_SHOWN} more" if len(words) > MOST_SHOWN else ""
    return ", ".join(words[:MOST_SHOWN]) + more
