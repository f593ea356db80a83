"""The API's page: its paths, keys and examples, from the same description that programs read."""

from __future__ import annotations

import json
import shlex

from kvplan.web.api import description
from kvplan.web.forms import query
from kvplan.web.pages import templates


def page() -> str:
    """The page."""
    paths = description()["paths"]
    examples = {path: _example(path, methods["post"]) for path, methods in paths.items()}
    shown = {"here": "api", "paths": paths, "examples": examples}
    return str(templates().get_template("api.html").render(shown))


def _example(path: str, post: dict[str, object]) -> str:
    body = post["requestBody"]["content"]["application/json"]["example"]  # type: ignore[index]
    server = "http://127.0.0.1:8517"
    if all("\n" not in str(value) for value in body.values()):
        return f"curl {shlex.quote(f'{server}{path}?{query(body)}')}"
    sent = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl {server}{path} --json {sent}"
