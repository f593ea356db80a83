"""One piece of work of a worker, and the reply to it: bytes with a status and a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kvplan._version import __version__
from kvplan.core.errors import BadQuestion, KvplanError, SourceUnreachable, UnknownName

JSON = "application/json"
HTML = "text/html; charset=utf-8"
SVG = "image/svg+xml"
SCRIPT = "text/javascript; charset=utf-8"


class Job(NamedTuple):
    """What is asked of a worker.

    ``kind`` is a key of ``KINDS``; ``given`` are the question's keys, as texts or plain values, and
    ``part`` says which part of an answer is wanted (a chart's name, a page's form or answer).
    """

    kind: str
    verb: str
    given: Mapping[str, Any]
    part: str = ""
    offline: bool = False


class Reply(NamedTuple):
    """What is sent back."""

    status: int
    media: str
    body: bytes


# There is nothing to plot: the answer beside the plots says why, if anything is wrong.
NOTHING = Reply(204, JSON, b"")


def status_of(error: KvplanError) -> int:
    """The HTTP status of an error: never one that blames the server for a question."""
    if isinstance(error, UnknownName):
        return 404
    return 424 if isinstance(error, SourceUnreachable) else 400


def refusal(verb: str, error: KvplanError, status: int | None = None) -> Reply:
    """The contract's error object."""
    body = {"kvplan": __version__, "verb": verb, "error": error.to_dict()}
    return Reply(status or status_of(error), JSON, _dumped(body))


def _dumped(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _api(job: Job) -> Reply:
    from kvplan.cli.defaults import taken_for, with_defaults
    from kvplan.web.ask import ask

    try:
        found = ask(job.verb, job.given, offline=job.offline).to_dict()
        return Reply(200, JSON, _dumped(with_defaults(found, taken_for(job.verb, job.given))))
    except KvplanError as error:
        return refusal(job.verb, error)


def _page(job: Job) -> Reply:
    from kvplan.web.pages import page

    status, text = page(job.verb, job.given, part=job.part, offline=job.offline)
    return Reply(status, HTML, text.encode("utf-8", "replace"))


def _chart(job: Job) -> Reply:
    from kvplan.web.drawn import specification

    try:
        found = specification(job.verb, job.given, job.part, offline=job.offline)
        return Reply(200, JSON, _dumped(found))
    except KvplanError:
        return NOTHING


def _charts(job: Job) -> Reply:
    from kvplan.web.drawn import specifications

    try:
        found = specifications(job.verb, job.given, offline=job.offline)
        return Reply(200, JSON, _dumped(found))
    except KvplanError:
        return NOTHING


def _picture(job: Job) -> Reply:
    from kvplan.web.drawn import picture

    try:
        found = picture(job.verb, job.given, job.part, offline=job.offline)
        return Reply(200, SVG, found.encode())
    except KvplanError as error:
        return refusal(job.verb, error)


def _script(_: Job) -> Reply:
    from kvplan.web.drawn import script

    return Reply(200, SCRIPT, script().encode())


def _compare(job: Job) -> Reply:
    from kvplan.web.compare import page

    status, text = page(job.given, job.part, offline=job.offline)
    return Reply(status, HTML, text.encode("utf-8", "replace"))


def _about(_: Job) -> Reply:
    from kvplan.web.about import page

    return Reply(200, HTML, page().encode())


KINDS: Mapping[str, Callable[[Job], Reply]] = {
    "api": _api,
    "page": _page,
    "chart": _chart,
    "charts": _charts,
    "picture": _picture,
    "compare": _compare,
    "about": _about,
    "script": _script,
}


def perform(job: Job) -> Reply:
    """The reply to a job, whatever happens: a fault of kvplan is a sentence too."""
    from kvplan.readers.reach import names_alone

    try:
        with names_alone():
            return KINDS[job.kind](job)
    except MemoryError:
        return refusal(job.verb, BadQuestion("The question takes more memory than there is."), 413)
    except Exception as error:
        said = f"kvplan failed on this question ({type(error).__name__}: {error})."[:300]
        hint = "That is a fault of kvplan: please report it, with what was asked."
        return refusal(job.verb, BadQuestion(said, hint), 422)
