"""Devices by any name people type: a plain name, a short one, or the driver's own string.

Cards of one's own (``readers.settings``) stand beside the shipped table, or in the place of one of
its rows, within ``with_own`` alone.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import UnknownName
from kvplan.readers import mig, unified

MAX_LISTED = 12
_FIELDS = {field.name for field in fields(Device)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Devices in their order and by every name, and those of them that are one's own."""

    devices: tuple[Device, ...]
    by_name: Mapping[str, Device]
    own: tuple[Device, ...] = ()


_WITH_OWN: ContextVar[_Table | None] = ContextVar("with_own", default=None)


@contextmanager
def with_own(own: tuple[Device, ...]) -> Iterator[None]:
    """Within it these are known, too; one with a shipped device's name stands in its place."""
    token = _WITH_OWN.set(_joined(own) if own else None)
    try:
        yield
    finally:
        _WITH_OWN.reset(token)


def own_devices() -> tuple[Device, ...]:
    """Those of ``with_own``."""
    return (_WITH_OWN.get() or _shipped()).own


def devices() -> tuple[Device, ...]:
    """Every device: of the shipped table, and one's own."""
    return (_WITH_OWN.get() or _shipped()).devices


def _joined(own: tuple[Device, ...]) -> _Table:
    more = {device.name: device for device in own}
    kept = tuple(more.pop(device.name, device) for device in _shipped().devices)
    return _table((*kept, *more.values()), own)


def _table(found: tuple[Device, ...], own: tuple[Device, ...] = ()) -> _Table:
    by_name = {
        fold(alias): device
        for device in found
        for alias in (device.name, device.title, *device.aliases)
    }
    return _Table(devices=found, by_name=by_name, own=own)


@cache
def _shipped() -> _Table:
    text = files("kvplan").joinpath("data/devices.json").read_text(encoding="utf-8")
    return _table(tuple(map(_device, json.loads(text))))


def _device(row: dict[str, Any]) -> Device:
    """A row of the table; what the type has no field for stays in the table."""
    known: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
        if key in _FIELDS
    }
    return Device(**known)


def fold(name: str) -> str:
    """A name without case, spaces and punctuation; a plus sign tells two devices apart."""
    return "".join(c for c in name.lower() if c.isalnum() or c == "+")


def _by_name() -> Mapping[str, Device]:
    return (_WITH_OWN.get() or _shipped()).by_name


def find_device(name: str) -> tuple[Device, tuple[str, ...]]:
    """The device of a name, with a warning where the name leaves its form open.

    Raises:
        UnknownName: no such device (near ones are named), or several that are equally usual.
    """
    name = str(name)[:100]
    asked = fold(name)
    found = _by_name().get(asked)
    if found is not None:
        return found, _form_warning(name, asked, found)
    derived = _slice(name) or _with_ram(name)
    if derived is not None:
        return derived
    forms = sorted({d.name for key, d in _by_name().items() if asked and asked in key})
    if len(forms) > 1:
        raise UnknownName(
            "device", name, hint=f"{len(forms)} forms have it in their name: {_listed(forms)}."
        )
    near = difflib.get_close_matches(asked, _by_name(), n=3, cutoff=0.6)
    names = list(dict.fromkeys([*forms, *(_by_name()[key].name for key in near)]))
    raise UnknownName(
        "device",
        name,
        names,
        "See kvplan gpus, or give --gpu-memory and --bandwidth without a name.",
    )


def _slice(name: str) -> tuple[Device, tuple[str, ...]] | None:
    """A MIG slice by its card's name and its profile."""
    parts = mig.split_name(name)
    if parts is None:
        return None
    card, said = find_device(parts[0])
    found, more = mig.slice_of(card, parts[1])
    return _by_name().get(fold(found.name), found), said + more


def _with_ram(name: str) -> tuple[Device, tuple[str, ...]] | None:
    """A device with unified memory by its name and the RAM installed."""
    parts = unified.split_name(name)
    device = _by_name().get(fold(parts[0])) if parts else None
    if parts is None or device is None or not device.gpu_working_set_mib_by_ram_gb:
        return None
    return unified.with_ram(device, parts[1]), ()


def _listed(names: list[str]) -> str:
    """Names for a sentence: the first dozen."""
    rest = len(names) - MAX_LISTED
    more = f" and {rest} more (kvplan gpus lists them)" if rest > 0 else ""
    return f"{', '.join(names[:MAX_LISTED])}{more}"


def _form_warning(name: str, asked: str, device: Device) -> tuple[str, ...]:
    """What a bare name was taken to mean, where it could have meant another form."""
    bare = asked in map(fold, device.usual_for)
    if asked == fold(device.name) or not (bare or asked.isdigit()):
        return ()
    others = sorted(
        {
            other.name
            for other in devices()
            if other is not device and any(asked in fold(n) for n in (other.name, *other.aliases))
        }
    )
    rest = f"; others: {', '.join(others[:6])}" if others else ""
    return (f"{name} is read as {device.name} ({device.title}){rest}.",)
