"""A repository of the hub as a folder: each file from the cache where it is fresh, else asked for.

A file is fresh without asking where the cache saw it in the commit that is asked about; else its
ETag is compared, by If-None-Match and by what a redirect says (X-Linked-Etag). Offline, whatever
the cache has stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar
from urllib.parse import quote

from kvplan.core.errors import BadFile, KvplanError, SourceUnreachable, UnknownName
from kvplan.core.units import KIB, MIB
from kvplan.readers import hub_cache, hub_settings
from kvplan.readers.http_ranges import TIMEOUT_S, Answer, Http, Refusal, RemoteFile
from kvplan.readers.hub_cache import Entry, Key
from kvplan.readers.hub_name import HubName
from kvplan.readers.in_parallel import in_parallel
from kvplan.readers.json_text import MAX_BYTES, parse_object

T = TypeVar("T")

OFFLINE = "It is not in the catalogue, and --offline forbids asking the hub."
CONFIG = "config.json"
LISTING = ""  # the name under which the list of files is kept
# Headers of one request: nearly every shard's, and a GGUF's without its vocabulary.
FIRST_BYTES, FIRST_GGUF_BYTES = 128 * KIB, MIB


class Hub:
    """One revision of one repository. Close it when done."""

    def __init__(self, name: HubName, *, offline: bool, timeout_s: float = TIMEOUT_S) -> None:
        self.name = name
        self.endpoint = hub_settings.endpoint()
        self.revision = name.revision or "main"
        self.commit = self.revision if re.fullmatch("[0-9a-f]{40}", self.revision) else ""
        self._http = None if offline else Http(self.endpoint, hub_settings.token(), timeout_s)
        self._opened: dict[str, RemoteFile] = {}
        self._seen: dict[str, Entry | None] = {}

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    @property
    def address(self) -> str:
        """Where the files are, by commit where the hub told it."""
        revision = quote(self.commit or self.revision, safe="")
        return f"{self.endpoint}/{self.name.id}/resolve/{revision}"

    @property
    def was_asked(self) -> bool:
        """Whether the cache has what an answer begins with."""
        return any(
            hub_cache.has(self.key(name)) for name in (CONFIG, LISTING, self.name.file or CONFIG)
        )

    def has(self, name: str) -> bool:
        """Whether there is such a file; it is opened."""
        try:
            self.open(name)
        except _Absent:
            return False
        return True

    def read(self, name: str, most: int) -> bytes | None:
        """All of a small file, or None."""
        try:
            entry = self._fetched(name, lambda http, known: http.get(self.url(name), most, known))
        except _Absent:
            return None
        return entry.data

    def open(self, name: str) -> RemoteFile:
        """A file of tensors, the beginning of its header here."""
        if name not in self._opened:
            first = FIRST_GGUF_BYTES if name.endswith(".gguf") else FIRST_BYTES
            entry = self._fetched(
                name, lambda http, known: http.part(self.url(name), 0, first, known)
            )
            more = _More(self, name, entry)
            self._opened[name] = RemoteFile(name, entry.size, entry.data, more)
        return self._opened[name]

    def names(self) -> list[str]:
        """The names of all files, as the hub lists them."""
        tail = f"/revision/{quote(self.name.revision, safe='')}" if self.name.revision else ""
        url = f"{self.endpoint}/api/models/{self.name.id}{tail}"
        try:
            entry = self._fetched(LISTING, lambda http, known: http.get(url, MAX_BYTES, known))
        except _Absent:
            raise self._unlisted() from None
        raw = parse_object(entry.data, f"The list of files of {self.name.id}")
        siblings = raw.get("siblings")
        if not isinstance(siblings, list):
            raise BadFile(f"The list of files of {self.name.id} has no siblings.")
        names = (item.get("rfilename") for item in siblings if isinstance(item, dict))
        return sorted(name for name in names if isinstance(name, str) and _is_plain(name))

    def each(self, act: Callable[[str], T], names: Iterable[str]) -> list[T]:
        """Side by side, with a bar where it takes long."""
        return in_parallel(act, names, f"Headers of {self.name.id}")

    def url(self, name: str) -> str:
        """The address of a file."""
        revision = quote(self.revision, safe="")
        return f"{self.endpoint}/{self.name.id}/resolve/{revision}/{quote(name)}"

    def key(self, name: str) -> Key:
        """The cache's key of a file."""
        return Key(self.endpoint, self.name.id, self.revision, name)

    def _fetched(self, name: str, ask: Callable[[Http, str], Answer]) -> Entry:
        """A file's beginning, asked for once.

        Raises:
            _Absent: the repository has no such file.
        """
        if name not in self._seen:
            try:
                self._seen[name] = self._fresh(name, ask)
            except _Absent:
                self._seen[name] = None
        found = self._seen[name]
        if found is None:
            hint = "" if self._http else "It was not downloaded, and --offline forbids asking."
            raise _Absent(f"file of {self.name.id}", name[:200], hint=hint)
        return found

    def _fresh(self, name: str, ask: Callable[[Http, str], Answer]) -> Entry | None:
        """A file's beginning: out of the cache where that is fresh, else asked for and kept."""
        entry = hub_cache.load(self.key(name))
        if self._http is None or (entry and entry.commit and entry.commit == self.commit):
            return entry
        answer = self.asked(name, lambda http: ask(http, entry.etag if entry else ""))
        commit = answer.commit or self.commit
        self.commit = self.commit or commit
        if answer.same and entry is not None:
            fresh = entry._replace(commit=commit)
        else:
            fresh = Entry(answer.data, answer.size, answer.etag, commit)
        if fresh != entry:
            hub_cache.store(self.key(name), fresh)
        return fresh

    def asked(self, name: str, ask: Callable[[Http], Answer]) -> Answer:
        """What the hub answers about a file; a refusal as what it means."""
        if self._http is None:
            raise SourceUnreachable(f"The rest of {name} of {self.name.id} was not downloaded.")
        try:
            return ask(self._http)
        except Refusal as refusal:
            raise self._meaning(refusal, name) from None

    def _meaning(self, refusal: Refusal, name: str) -> KvplanError:
        """What a status and the hub's word for it say about the repository."""
        if refusal.error == "RevisionNotFound":
            return UnknownName(f"revision of {self.name.id}", self.revision)
        if refusal.error == "RepoNotFound":
            return self._unknown()
        if refusal.status == 404:
            return _Absent(f"file of {self.name.id}", name[:200])
        if refusal.status in (401, 403):
            return self._closed(refusal)
        return refusal

    def _closed(self, refusal: Refusal) -> SourceUnreachable:
        """A model whose licence is to be accepted, or that is private."""
        hint = f"Accept its licence at {self.endpoint}/{self.name.id} and set HF_TOKEN."
        if self._http is not None and self._http.has_token:
            hint = (
                f"Accept its licence at {self.endpoint}/{self.name.id} with the account of the "
                "token that was sent (HF_TOKEN), and look whether the token may read it."
            )
        return SourceUnreachable(
            f"{self.name.id} is gated or private: the hub answered {refusal.status}.", hint
        )

    def _unlisted(self) -> KvplanError:
        """No list of files: no such repository, where nothing else of it was seen."""
        if self._http is None:
            return SourceUnreachable(f"The list of files of {self.name.id} was not downloaded.")
        if any(self._seen.values()):
            return SourceUnreachable(
                f"{self._http.host} does not list the files of {self.name.id}."
            )
        return self._unknown()

    def _unknown(self) -> UnknownName:
        from kvplan.readers import catalogue

        hint = f"It is not on {self.endpoint}; a private model needs HF_TOKEN."
        return catalogue.unknown(self.name.id, hint if self._http else OFFLINE)


class _Absent(UnknownName):
    """The repository has no such file."""


class _More:
    """The rest of a header: asked for as it is needed, and kept with its beginning."""

    def __init__(self, hub: Hub, name: str, entry: Entry) -> None:
        self.hub = hub
        self.name = name
        self.entry = entry

    def __call__(self, offset: int, length: int) -> bytes:
        """Bytes that follow those held; they must be of the same version of the file."""
        url = self.hub.url(self.name)
        answer = self.hub.asked(self.name, lambda http: http.part(url, offset, length))
        if (answer.size, answer.etag) != (self.entry.size, self.entry.etag):
            raise SourceUnreachable(f"{self.name} changed while it was read.", "Try again.")
        self.entry = self.entry._replace(data=self.entry.data + answer.data)
        hub_cache.store(self.hub.key(self.name), self.entry)
        return answer.data


def _is_plain(name: str) -> bool:
    """Whether a listed name is one, and stays inside the repository."""
    parts = name.split("/")
    return len(name) <= 400 and name.isprintable() and not {"", ".", ".."} & set(parts)
