"""Bounded reading over HTTP: whole small files, and parts of large ones.

    GET /org/name/resolve/main/model.safetensors      Range: bytes=0-131071
    302 → https://another.host/…                      X-Linked-Etag, X-Repo-Commit
    206                                               Content-Range: bytes 0-131071/4967215360

Redirects are followed here and not by httpx: the token goes to the endpoint's own origin alone, and
what a redirect says of the file (its ETag) can make the rest needless. A server that answers a
range with 200 is about to send the whole file: its answer is closed unread.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from kvplan._version import __version__
from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.units import KIB, MIB
from kvplan.readers.ranges import MAX_HEADER_BYTES

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0
MAX_ANSWER_S = 120.0  # one answer in all: a server that drips bytes ends here
MAX_REDIRECTS = 5
MAX_ASIDE_BYTES = 64 * KIB  # the text of a redirect or an error, read so that its connection lives
MAX_FILE_BYTES = 1 << 60
GROWTH = 4
HINT = "Try again, or ask with --offline for what was downloaded before."
REDIRECTS = (301, 302, 303, 307, 308)
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")


class Refusal(SourceUnreachable):
    """A status that is no answer, with the hub's word for it."""

    def __init__(self, host: str, path: str, status: int, error: str) -> None:
        said = f" ({error[:60]})" if error else ""
        hint = "It limits requests: try again in a few minutes." if status == 429 else ""
        super().__init__(f"{host} answered {status}{said} for {path[:200]}.", hint)
        self.status = status
        self.error = error


class Answer(NamedTuple):
    """What came: the bytes, the size of the whole file, and what tells its version.

    ``same`` is an answer without bytes: the file has the ETag that was known.
    """

    data: bytes
    size: int
    etag: str
    commit: str
    same: bool = False


class Http:
    """GET requests to one endpoint and to where it redirects. Close it when done."""

    def __init__(self, endpoint: str, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        import httpx

        self.origin = _origin(httpx.URL(endpoint))
        self.host = httpx.URL(endpoint).host
        self.has_token = bool(token)
        self._token = token
        self._timeout_s = timeout_s
        headers = {"User-Agent": f"kvplan/{__version__}", "Accept-Encoding": "identity"}
        try:
            self._client = httpx.Client(timeout=timeout_s, headers=headers)
        except (ImportError, ValueError, OSError) as error:  # a proxy or certificates as configured
            raise SourceUnreachable(
                f"The settings for reaching {self.host} are refused: {str(error)[:160]}."
            ) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, url: str, most: int, known: str = "") -> Answer:
        """All of a file of at most ``most`` bytes, unless its ETag is ``known``.

        Raises:
            Refusal: the server does not give it.
            BadFile: it is larger.
            SourceUnreachable: no answer, or one that breaks off.
        """
        return self._ask(url, {}, known, lambda response: _whole(response, most))

    def part(self, url: str, offset: int, length: int, known: str = "") -> Answer:
        """Bytes from ``offset``, unless the file's ETag is ``known``.

        Raises:
            Refusal: the server does not give it.
            BadFile: it sends another part than was asked for.
            SourceUnreachable: no answer, one that breaks off, or a server without ranges.
        """
        wanted = {"Range": f"bytes={offset}-{offset + length - 1}"}
        return self._ask(url, wanted, known, lambda response: _part(response, offset, length))

    def _ask(
        self,
        url: str,
        headers: dict[str, str],
        known: str,
        receive: Callable[[httpx.Response], tuple[bytes, int]],
    ) -> Answer:
        """Ask, follow redirects, and receive what the last answer brings."""
        if known:
            headers = {**headers, "If-None-Match": known}
        etag = commit = ""
        with self._as_sentences():
            for _ in range(MAX_REDIRECTS + 1):
                with self._client.stream("GET", url, headers=headers | self._token_for(url)) as r:
                    moved = r.status_code in REDIRECTS
                    etag = etag or _etag(r, linked=moved)
                    commit = commit or r.headers.get("X-Repo-Commit", "")[:64]
                    if known and (r.status_code == 304 or (etag == known and r.status_code < 400)):
                        return Answer(b"", 0, known, commit, same=True)
                    if not moved:
                        _refuse(r)
                        return Answer(*receive(r), etag, commit)
                    url = _next(r)
                    _read_aside(r)
        raise SourceUnreachable(f"{self.host} redirects more than {MAX_REDIRECTS} times.")

    def _token_for(self, url: str) -> dict[str, str]:
        """The token's header, for the endpoint's own origin alone."""
        import httpx

        if self._token and _origin(httpx.URL(url)) == self.origin:
            return {"Authorization": f"Bearer {self._token}"}
        return {}

    @contextmanager
    def _as_sentences(self) -> Iterator[None]:
        """Failures of the network as errors for the person who asked."""
        import httpx

        try:
            yield
        except httpx.TimeoutException:
            raise SourceUnreachable(
                f"{self.host} did not answer within {self._timeout_s:g} seconds.", HINT
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceUnreachable(
                f"{self.host} cannot be reached ({str(error)[:160] or type(error).__name__}).", HINT
            ) from None


class RemoteFile:
    """The beginning of a file behind ranges, which grows as it is read.

    Args:
        name: what to call it.
        size: bytes of the whole file.
        data: its beginning, as far as it is here.
        more: gives ``length`` bytes from an offset, and keeps what is worth keeping.
    """

    def __init__(
        self, name: str, size: int, data: bytes, more: Callable[[int, int], bytes]
    ) -> None:
        self.name = name
        self.size = size
        self.data = data
        self._more = more

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from ``offset``."""
        end = min(offset + length, self.size)
        if end > MAX_HEADER_BYTES:
            raise BadFile(f"The header of {self.name} is larger than a header can be.")
        held = len(self.data)
        if end > held:
            upto = min(max(end, GROWTH * held), self.size, MAX_HEADER_BYTES)
            self.data += self._more(held, upto - held)
        return self.data[offset:end]


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _etag(response: httpx.Response, *, linked: bool) -> str:
    """What tells the file's version; on a redirect only what it says of its target."""
    found = response.headers.get("X-Linked-Etag") or (
        "" if linked else response.headers.get("ETag")
    )
    tag = str(found or "").removeprefix("W/")
    return tag if len(tag) <= 200 and tag.isascii() else ""


def _next(response: httpx.Response) -> str:
    """Where a redirect points: http or https, and never from https to http."""
    url = response.url.join(response.headers.get("Location", ""))
    if url.scheme not in ("http", "https") or response.url.scheme > url.scheme:
        raise SourceUnreachable(
            f"{response.url.host} redirects to {url.scheme[:20]}:, which is not followed."
        )
    return str(url)


def _refuse(response: httpx.Response) -> None:
    """Raise what is neither 200 nor 206."""
    if response.status_code in (200, 206):
        return
    if response.status_code == 416:
        raise BadFile(f"{response.url.host}{response.url.path[:200]} ends before its header does.")
    error = response.headers.get("X-Error-Code", "")
    _read_aside(response)
    raise Refusal(response.url.host, response.url.path, response.status_code, error)


def _whole(response: httpx.Response, most: int) -> tuple[bytes, int]:
    """All of an answer, within bounds."""
    name = f"{response.url.host}{response.url.path}"[:200]
    if response.status_code != 200:
        raise BadFile(f"{name} answered with a part of a file that was asked for whole.")
    if _length(response) > most:
        raise BadFile(f"{name} is larger than {most / MIB:g} MiB.")
    data = _received(response, most + 1)
    if len(data) > most:
        raise BadFile(f"{name} is larger than {most / MIB:g} MiB.")
    return data, len(data)


def _part(response: httpx.Response, offset: int, length: int) -> tuple[bytes, int]:
    """A part of a file, which must be the one that was asked for, and the file's size."""
    host = response.url.host
    if response.status_code == 200:
        raise SourceUnreachable(f"{host} ignores range requests: it would send the whole file.")
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    begin, end, size = map(int, found.groups()) if found else (0, 0, 0)
    fits = begin == offset and begin <= end < min(offset + length, size) and size <= MAX_FILE_BYTES
    if not fits:
        raise BadFile(
            f"{host} answered bytes {offset:,} to {offset + length - 1:,} with the range "
            f"{response.headers.get('Content-Range', '')[:60]!r}."
        )
    data = _received(response, end - begin + 1)
    if len(data) != end - begin + 1:
        raise SourceUnreachable(f"{host} broke off after {len(data):,} bytes of a part.", HINT)
    return data, size


def _length(response: httpx.Response) -> int:
    """The length that an answer announces, or 0."""
    found = response.headers.get("Content-Length", "")
    return int(found) if found.isdecimal() and len(found) < 20 else 0


def _received(response: httpx.Response, most: int) -> bytes:
    """At most ``most`` bytes of an answer, as they were sent."""
    coding = response.headers.get("Content-Encoding", "identity")
    if coding != "identity":
        raise BadFile(f"{response.url.host} sends {coding[:20]}, which was not asked for.")
    return _bounded(response, most)


def _read_aside(response: httpx.Response) -> None:
    """Read a short text that nobody needs, so that the connection can be used again."""
    if _length(response) <= MAX_ASIDE_BYTES:
        _bounded(response, MAX_ASIDE_BYTES)


def _bounded(response: httpx.Response, most: int) -> bytes:
    """At most ``most`` bytes, and no longer than an answer may take."""
    deadline = time.monotonic() + MAX_ANSWER_S
    data = bytearray()
    for piece in response.iter_raw(64 * KIB):
        data += piece
        if len(data) >= most:
            break
        if time.monotonic() > deadline:
            raise SourceUnreachable(
                f"{response.url.host} took more than {MAX_ANSWER_S:g} seconds for an answer.", HINT
            )
    return bytes(data[:most])
