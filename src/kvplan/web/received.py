"""What a request holds, as a form's keys: from its address, a form, or a file that was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData, QueryParams, UploadFile
from starlette.requests import Request

from kvplan.core.errors import BadFile, BadValue
from kvplan.readers.json_text import parse_object
from kvplan.readers.ranges import MAX_HEADER_BYTES, Memory

MAX_KEYS = 128
MAX_LOG = 32 << 20
LINES = (".log", ".txt", ".jsonl", ".csv", ".gz")  # files of lines, of which JSON may be the first
OUTSIDE = frozenset({"file", "file_size", "part"})  # keys of the page itself


def of_address(parameters: QueryParams) -> dict[str, Any]:
    """The keys of an address; a key that stands twice is a list.

    Raises:
        BadValue: too many of them.
    """
    return _pairs(parameters.multi_items())


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(items) > MAX_KEYS:
        raise BadValue(f"There are more than {MAX_KEYS} keys.")
    found: dict[str, Any] = {}
    for key, value in items:
        held = found.get(key)
        if held is None:
            found[key] = value
        else:
            found[key] = [*held, value] if isinstance(held, list) else [held, value]
    return found


async def of_form(request: Request) -> dict[str, Any]:
    """The keys of a form that was sent, a file among them as what it is.

    Raises:
        BadValue: a form that cannot be read.
        BadFile: a file that is nothing that is known here.
    """
    from starlette.exceptions import HTTPException
    from starlette.formparsers import MultiPartException

    try:
        form = await request.form(max_files=2, max_fields=MAX_KEYS, max_part_size=MAX_LOG)
    except (HTTPException, MultiPartException, ValueError, AssertionError) as error:
        said = str(getattr(error, "detail", None) or getattr(error, "message", None) or error)
        raise BadValue(f"The form cannot be read: {said[:120]}.") from None
    try:
        return await _of_parts(form)
    finally:
        await form.close()


async def _of_parts(form: FormData) -> dict[str, Any]:
    texts = [(k, v) for k, v in form.multi_items() if isinstance(v, str) and k not in OUTSIDE]
    found = _pairs(texts)
    for key, value in form.multi_items():
        if isinstance(value, UploadFile) and value.filename and key == "file":
            data = await value.read(MAX_HEADER_BYTES)
            found |= of_file(data, value.filename, str(form.get("file_size") or ""))
    return found


def of_file(data: bytes, name: str, size: str = "") -> Mapping[str, Any]:
    """The key that a file fills: a model's header, a config, or a log.

    Raises:
        BadFile: an empty file, or JSON that is no config.
    """
    name = "".join(c for c in name[-80:] if c.isprintable())
    if not data:
        raise BadFile(f"{name} is empty.")
    if data[:4] == b"GGUF":
        whole = int(size) if size.isdecimal() and len(size) < 19 else len(data)
        return {"model": Memory(data, name, max(whole, len(data)))}
    if data.lstrip()[:1] == b"{" and not name.endswith(LINES):
        return {"model": parse_object(data, name)}
    return {"log": data[:MAX_LOG]}
