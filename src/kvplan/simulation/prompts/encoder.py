"""Tokens of a text: a real tokenizer's, or an estimate that says so.

The estimate takes four bytes of UTF-8 for a token, about what English text has. It is exact about
where two texts part (within four bytes), and only roughly right about how many tokens that is.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.core.units import MIB
from kvplan.readers import reach

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]

BYTES_PER_TOKEN = 4
LONGEST_TEXT = 16 * MIB  # four million tokens
LARGEST_TOKENIZER = 256 * MIB


class Encoder(Protocol):
    """Text to tokens."""

    name: str
    estimated: bool

    def encode(self, text: str) -> Tokens:
        """The tokens of a text."""
        ...


class Estimate:
    """Four bytes of UTF-8 are a token; its number is the bytes themselves."""

    name = f"an estimate of {BYTES_PER_TOKEN} bytes a token"
    estimated = True

    def encode(self, text: str) -> Tokens:
        """Bytes in fours, the last ones filled up."""
        import numpy as np

        data = text.encode("utf-8", "replace")
        data += b"\0" * (-len(data) % BYTES_PER_TOKEN)
        return np.frombuffer(data, "<u4").astype(np.int64)


class Tokenizer:
    """A tokenizer.json, run by the library it was made with."""

    estimated = False

    def __init__(self, inner: Any, name: str) -> None:
        self.inner, self.name = inner, name

    def encode(self, text: str) -> Tokens:
        """Without special tokens added: a template writes its own."""
        import numpy as np

        return np.array(self.inner.encode(text, add_special_tokens=False).ids, np.int64)

    def offsets(self, text: str) -> list[int]:
        """The character at which each token begins, as the library reports it."""
        return [start for start, _ in self.inner.encode(text, add_special_tokens=False).offsets]


@lru_cache(maxsize=4)
def encoder_of(name: str | None, *, offline: bool = False) -> Encoder:
    """The tokenizer of a file, a folder or a name of the hub; the estimate of None.

    Raises:
        BadValue: the ``prefix`` extra is not installed, or a name while offline.
        BadFile: no tokenizer.
        SourceUnreachable: it cannot be read.
    """
    if name is None:
        return Estimate()
    reach.check(f"A tokenizer that is named ({name[:60]})")
    path = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    library = _library()
    if path.is_file():
        return Tokenizer(_read(library, path), path.name)
    if offline or name.endswith(".json"):
        what = "is no file, and the hub is not asked offline" if offline else "is no file"
        raise BadValue(f"--tokenizer {name[:100]} {what}.", "Name a tokenizer.json.")
    try:
        return Tokenizer(library.from_pretrained(name), name)
    except Exception as error:  # the library's own are bare
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise SourceUnreachable(f"The tokenizer of {name[:100]} cannot be had: {said}.") from None


def _library() -> Any:
    try:
        from tokenizers import Tokenizer as Library
    except ImportError:
        raise BadValue(
            "A tokenizer needs the prefix extra, which is not installed.",
            "Install it with: pip install 'kvplan[prefix]'",
        ) from None
    return Library


def _read(library: Any, path: Path) -> Any:
    if path.stat().st_size > LARGEST_TOKENIZER:
        raise BadFile(f"{path} is larger than {LARGEST_TOKENIZER >> 20} MiB: no tokenizer is.")
    try:
        return library.from_file(str(path))
    except Exception as error:  # the library's own are bare
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise BadFile(f"{path} is no tokenizer: {said}.") from None
