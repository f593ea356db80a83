"""Where a scrape is from: a server's address, or a dump that was saved.

http://localhost:8000            the path is /metrics where none is given
metrics.txt
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.core.units import MIB
from kvplan.logs.metrics.reading import Reading, read_metrics
from kvplan.readers import reach

MOST_BYTES: Final = 32 * MIB
TIMEOUT_S: Final = 10.0
HINT: Final = (
    "Is the server up, and does it export metrics (SGLang: --enable-metrics; llama.cpp: --metrics)?"
)


def is_address(source: object) -> bool:
    """Whether it is a server's address."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def address_of(source: str) -> str:
    """The address that is asked.

    Raises:
        BadValue: one without a host, or with a name and password in it.
    """
    parts = urlsplit(source)
    if not parts.hostname or "@" in parts.netloc:
        raise BadValue(
            "An address is http://HOST:PORT, without a name and password in it.",
            "kvplan explain http://localhost:8000",
        )
    path = parts.path if parts.path not in ("", "/") else "/metrics"
    return parts._replace(path=path, fragment="").geturl()


def scrape(source: str | Path) -> Reading:
    """The figures of a server or of a dump.

    Raises:
        SourceUnreachable: the server does not answer, or the file cannot be read.
        BadFile: what comes is no scrape of an engine that is read here.
    """
    data = fetched(str(source)) if is_address(source) else _read(Path(source))
    reading = read_metrics(data.decode("utf-8", "replace").splitlines())
    if reading is None:
        raise BadFile(
            f"{str(source)[:200]} has no series of vLLM, SGLang, llama.cpp or TGI.",
            "Pass the address of the engine itself, not of a gateway.",
        )
    return reading


def fetched(source: str) -> bytes:
    """What a server exports.

    Raises:
        BadValue: an address that is none.
        SourceUnreachable: the server does not answer.
        BadFile: it answers without end.
    """
    from kvplan.readers.http_ranges import Http

    reach.check("The address of a server")
    address = address_of(source)
    http = Http(address, timeout_s=TIMEOUT_S)
    try:
        return http.get(address, MOST_BYTES).data
    except SourceUnreachable as error:
        raise SourceUnreachable(error.message, HINT) from None
    finally:
        http.close()


def _read(path: Path) -> bytes:
    reach.check("A saved scrape")
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(data) > MOST_BYTES:
        raise BadFile(f"{path} is larger than {MOST_BYTES // MIB} MiB.", "A scrape has some KiB.")
    return data
