"""The JSON API: a path a verb, its keys as those of the function, its answers by their schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from kvplan._version import __version__
from kvplan.core.errors import BadValue
from kvplan.readers.json_text import parse_object
from kvplan.web import received
from kvplan.web.fields import Field, fields_of, takes_engine_flags
from kvplan.web.limits import MAX_API_BODY
from kvplan.web.verbs import TEXTS, VERBS, Verb

if TYPE_CHECKING:
    from kvplan.web.app import Served

TYPES: Mapping[str, dict[str, Any]] = {
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "switch": {"type": "boolean"},
    "text": {"type": "string"},
    "pairs": {"type": "object"},
}
READ: Mapping[str, Callable[[str], Any]] = {"whole": int, "number": float, "text": str}
REFUSALS = {
    "400": "The question is wrong: what was asked, what was found, what works.",
    "404": "No model, card or engine has that name; near ones are named.",
    "413": "What is sent is too large.",
    "422": "The answer takes longer than this server works on one.",
    "424": "The hub, which was asked for the model, does not answer.",
    "429": "The server is busy.",
}


def add(app: FastAPI, serve: Served) -> None:
    """Add the routes."""
    for verb in VERBS:
        app.add_api_route(f"/api/{verb}", _by_address(serve, verb), methods=["GET"])
        app.add_api_route(f"/api/{verb}", _by_body(serve, verb), methods=["POST"])

    async def openapi() -> Response:
        return JSONResponse(description())

    app.add_api_route("/openapi.json", openapi, methods=["GET"])


def _by_address(serve: Served, verb: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await serve.reply("api", verb, received.of_address(request.query_params))

    return answer


def _by_body(serve: Served, verb: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/json", ""):
            raise BadValue(f"A body of {kind[:60]!r} is not read.", "Send application/json.")
        given = parse_object(await request.body(), "The body", MAX_API_BODY)
        return await serve.reply("api", verb, given)

    return answer


@cache
def description() -> dict[str, Any]:
    """The API as OpenAPI 3.1, with the schemas that ship with the package."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kvplan",
            "version": __version__,
            "summary": "Size, fit and explain the KV cache of any language model, to the byte.",
        },
        "paths": {f"/api/{verb.name}": _path(verb) for verb in VERBS.values()},
        "components": {
            "schemas": {name: _schema(name) for name in (*VERBS, "error")},
        },
    }


def _schema(name: str) -> dict[str, Any]:
    text = files("kvplan").joinpath(f"data/schemas/{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return {key: value for key, value in found.items() if key not in ("$schema", "$id")}


def _path(verb: Verb) -> dict[str, Any]:
    fields = fields_of(verb.name)
    shared = {"summary": verb.lead, "tags": [verb.title], "responses": _responses(verb.name)}
    return {
        "get": shared
        | {
            "operationId": f"{verb.name}_by_address",
            "parameters": [_parameter(verb, field) for field in fields.values()],
        },
        "post": shared
        | {
            "operationId": verb.name,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": _body(verb), "example": example(verb)}},
            },
        },
    }


def example(verb: Verb) -> dict[str, Any]:
    """A question that is answered, each value of the type that its key has."""
    if verb.example:
        fields = fields_of(verb.name)
        return {key: READ[fields[key].kind](value) for key, value in verb.example.items()}
    return {verb.pasted[0]: TEXTS[verb.name]}


def _parameter(verb: Verb, field: Field) -> dict[str, Any]:
    kind = TYPES["text"] if field.kind == "pairs" else TYPES[field.kind]
    schema = {"type": "array", "items": kind} if field.kind == "pairs" else kind
    found = {
        "name": field.name,
        "in": "query",
        "required": field.required,
        "description": field.help,
        "schema": schema,
    }
    value = example(verb).get(field.name)
    return found | ({"example": value} if value is not None else {})


def _body(verb: Verb) -> dict[str, Any]:
    fields = fields_of(verb.name)
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields.values()},
        "required": [field.name for field in fields.values() if field.required],
        "additionalProperties": takes_engine_flags(verb.name),
    }


def _property(field: Field) -> dict[str, Any]:
    kind = dict(TYPES[field.kind])
    if field.name == "model":
        kind = {"type": ["string", "object"]}
    elif field.kind == "text" and field.digits:
        kind = {"type": ["string", "integer"]}
    if field.several:
        kind = {"anyOf": [kind, {"type": "array", "items": kind, "minItems": 1}]}
    return kind | {"description": field.help}


def _responses(verb: str) -> dict[str, Any]:
    def content(name: str) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}

    refused = {
        status: {"description": said, "content": content("error")}
        for status, said in REFUSALS.items()
    }
    return {"200": {"description": "The answer.", "content": content(verb)}} | refused
