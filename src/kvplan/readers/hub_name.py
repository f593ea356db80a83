"""How a model of the hub is named, and which file of it.

org/name                       its config.json, or its only GGUF
org/name@revision              a branch, tag or commit
org/name:Q4_K_M                the GGUF of a quantisation
org/name/folder/file.gguf      one file
hf:org/name                    the hub's, whatever else has the name
https://huggingface.co/org/name/tree/main
hf.co/org/name:Q4_K_M          the hub's, where Ollama has not pulled it
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(
    r"(?P<id>[\w.-]{1,96}/[\w.-]{1,96})"
    r"(?:@(?P<revision>[\w./-]{1,100}?))?"
    r"(?::(?P<quant>[\w.-]{1,40})|/(?P<file>[\w. /+-]{1,300}\.gguf))?",
    re.ASCII,
)
_PREFIX = re.compile(r"hf:|(?P<scheme>https?://)?(?:huggingface\.co|hf\.co)/")
_PAGE = re.compile(r"/(?:tree|blob|resolve)/([^/]+)")
MAX_LENGTH = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class HubName:
    """A repository, its revision, and the file asked for."""

    id: str
    revision: str = ""
    quant: str = ""
    file: str = ""
    prefixed: bool = False

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        quant = f":{self.quant}" if self.quant else ""
        return f"{self.id}{revision}{quant}" + (f"/{self.file}" if self.file else "")

    @property
    def is_of_the_hub_alone(self) -> bool:
        """Whether neither the catalogue nor Ollama can be meant."""
        return bool(self.prefixed or self.revision or self.file)


def parse_hub_name(text: str) -> HubName | None:
    """The parts of a name, or None where no model of the hub can be named so."""
    if len(text) > MAX_LENGTH:
        return None
    prefix = _PREFIX.match(text)
    rest = text[prefix.end() :].rstrip("/") if prefix else text
    if prefix:
        rest = _PAGE.sub(r"@\1", rest, count=1)
    found = _NAME.fullmatch(rest)
    if found is None or any(set(part) == {"."} for part in re.split("[/@]", rest)):
        return None
    if ".." in (found["id"] + (found["revision"] or "")):
        return None
    parts = {key: part for key, part in found.groupdict().items() if part}
    return HubName(**parts, prefixed=bool(prefix and (prefix["scheme"] or prefix[0] == "hf:")))
