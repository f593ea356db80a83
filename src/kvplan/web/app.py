"""The application: pages, plots, the API, and the files that belong to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kvplan._version import __version__
from kvplan.core.errors import BadQuestion, KvplanError, UnknownName
from kvplan.readers.settings import Settings
from kvplan.web import api, received
from kvplan.web.jobs import HTML, JSON, Job, Reply, refusal
from kvplan.web.limits import Guard
from kvplan.web.verbs import VERBS
from kvplan.web.workers import Workers

LOOPBACK = frozenset({"127.0.0.1", "localhost", "testserver"})
FOREVER = {"cache-control": "public, max-age=86400"}


class Worker(Protocol):
    """What does jobs: the pool of processes, or the test's own."""

    async def do(self, job: Job) -> Reply:
        """The reply to a job."""
        ...

    def running(self) -> Any:
        """A context in which jobs are done."""
        ...


def create_app(
    *,
    workers: Worker | None = None,
    offline: bool = False,
    hosts: frozenset[str] | None = LOOPBACK,
    settings: Settings | None = None,
) -> FastAPI:
    """The application.

    Args:
        workers: who does the jobs; default: a pool of processes.
        offline: never ask the hub.
        hosts: the names that the server answers to; None for any.
        settings: what holds where a question does not say it.
    """
    pool: Worker = workers or Workers(settings=settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool.running():
            yield

    app = FastAPI(
        title="kvplan",
        version=__version__,
        summary="Size, fit and explain the KV cache of any language model, to the byte.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    serve = Served(pool, offline)
    api.add(app, serve)
    _add_pages(app, serve)
    static = Path(str(files("kvplan.web").joinpath("static")))
    app.mount("/static", StaticFiles(directory=static), name="static")
    app.add_exception_handler(HTTPException, _not_here)
    app.add_exception_handler(KvplanError, _refused)
    app.add_middleware(Guard, hosts=hosts)
    return app


class Served:
    """Jobs as responses."""

    def __init__(self, pool: Worker, offline: bool) -> None:
        self.pool = pool
        self.offline = offline

    async def reply(self, kind: str, verb: str, given: Any, part: str = "") -> Response:
        """The response of one job."""
        found = await self.pool.do(Job(kind, verb, given, part, self.offline))
        if kind in ("page", "compare", "about") and found.media == JSON:
            return self.page_of(found, part)
        return _response(found)

    def page_of(self, found: Reply, part: str) -> Response:
        """A refusal that was not worked out as a page, as one, or as its part."""
        from kvplan.web.pages import refused

        text = refused(json.loads(found.body)["error"], part)
        return _response(Reply(found.status, HTML, text.encode("utf-8", "replace")))


def _response(found: Reply) -> Response:
    return Response(found.body, found.status, {"cache-control": "no-store"}, found.media)


def _add_pages(app: FastAPI, serve: Served) -> None:
    async def script() -> Response:
        response = await serve.reply("script", "", {})
        response.headers.update(FOREVER)
        return response

    app.add_api_route("/static/vega.js", script, methods=["GET"])
    app.add_api_route("/", _page(serve, "fit"), methods=["GET", "POST"])
    for verb in VERBS:
        app.add_api_route(f"/{verb}", _page(serve, verb), methods=["GET", "POST"])
    app.add_api_route("/compare", _compare(serve), methods=["GET"])
    app.add_api_route("/api", _about(serve), methods=["GET"])
    for kind in ("chart", "picture"):
        app.add_api_route(f"/{kind}/{{verb}}/{{part}}", _plot(serve, kind), methods=["GET", "POST"])
    app.add_api_route("/charts/{verb}", _plot(serve, "charts"), methods=["GET", "POST"])


def _page(serve: Served, verb: str) -> Callable[[Request], Any]:
    async def page(request: Request) -> Response:
        asked, given = await _asked(request, verb)
        if not given and "part" not in request.query_params:
            given = VERBS[asked].example
        return await serve.reply("page", asked, given, request.query_params.get("part", ""))

    return page


def _plot(serve: Served, kind: str) -> Callable[..., Any]:
    async def plot(request: Request, verb: str, part: str = "") -> Response:
        if verb not in {**VERBS, "compare": None}:
            raise UnknownName("question", verb[:60], VERBS)
        asked, given = await _asked(request, verb)
        return await serve.reply(kind, asked, given, part)

    return plot


def _compare(serve: Served) -> Callable[[Request], Any]:
    async def compare(request: Request) -> Response:
        given = received.of_address(request.query_params)
        return await serve.reply("compare", "fit", given, str(given.pop("part", "")))

    return compare


def _about(serve: Served) -> Callable[[], Any]:
    async def about() -> Response:
        return await serve.reply("about", "", {})

    return about


async def _asked(request: Request, verb: str) -> tuple[str, dict[str, Any]]:
    """The verb and the keys of a request.

    A file of lines is the document that the page asks for; where it asks for none, a log, which is
    explained.
    """
    given = received.of_address(request.query_params)
    if request.method == "POST":
        given |= await received.of_form(request)
    given.pop("part", None)
    pasted = VERBS[verb].pasted if verb in VERBS else ()
    if "log" in given and "log" not in pasted:
        if not pasted:
            return "explain", {"log": given["log"]}
        given[pasted[0]] = given.pop("log")
    return verb, {key: value for key, value in given.items() if value not in ("", [])}


async def _not_here(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    words = {404: "There is no such page.", 405: "That is not how it is asked."}
    said = words.get(status, str(getattr(error, "detail", error)))
    found = refusal("", BadQuestion(said, "See / and /api."), status)
    headers = getattr(error, "headers", None)
    return Response(found.body, found.status, headers, found.media)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, KvplanError)
    found = refusal("", error)
    return Response(found.body, found.status, media_type=found.media)
