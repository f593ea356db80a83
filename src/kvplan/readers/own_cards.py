"""The ``[cards.NAME]`` tables of a settings file: prices of known cards, and cards of one's own.

    [cards.h100-sxm-80gb]          a known card: what is said replaces what the table has
    price = 2.10

    [cards.our-h100]               one's own: like a known one, or with a vendor and memory
    like = "h100-sxm-80gb"
    memory = "95830MiB"

What nobody says of a card of one's own is not known, and nothing is taken in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from kvplan.core.device import CardPrice, Device
from kvplan.core.errors import BadFile, BadValue, UnknownName
from kvplan.core.units import USD, parse_bandwidth, parse_bytes
from kvplan.readers.devices import devices, find_device, fold
from kvplan.readers.toml_text import MOST, Keys

MAX_CARDS: Final = 200
MAX_NAME: Final = 60
MAX_ALIASES: Final = 16
KEYS: Final = ("price", "like", "title", "vendor", "memory", "bandwidth", "tflops", "link",
               "power", "unified-memory", "aliases")  # fmt: skip
KINDS: Final = ("fp16", "bf16", "fp8", "int8", "fp4")  # that the table has peaks of
OF_ONES_OWN: Final = ("like", "title", "vendor", "aliases", "unified-memory")


class Money(NamedTuple):
    """The currency of every price of a file, and what a dollar is in it, where it says so."""

    currency: str = USD
    exchange_rate: float | None = None

    def in_dollars(self, amount: float) -> float | None:
        """An amount in dollars; None where no rate is said."""
        if self.currency == USD:
            return amount
        return None if self.exchange_rate is None else amount / self.exchange_rate


def read_cards(tables: Keys, money: Money) -> tuple[Device, ...]:
    """The devices of the tables.

    Raises:
        BadFile: a key or value that cannot be, a name that is not known and has no memory, or a
            card twice.
    """
    if len(tables.table) > MAX_CARDS:
        raise BadFile(f"{tables.source()} has more than {MAX_CARDS} cards.")
    found: dict[str, Device] = {}
    names = {fold(a): d.name for d in devices() for a in (d.name, d.title, *d.aliases)}
    for name in tables.table:
        keys = tables.within(name)
        device = _card(name, keys, money)
        if device.name in found:
            raise BadFile(f"{keys.source()} is {device.name}, which is there twice.")
        for alias in (device.name, device.title, *device.aliases):
            held = names.setdefault(fold(alias), device.name)
            if held != device.name:
                raise BadFile(f"{keys.source()} has the name {alias!r}, which {held} has.")
        found[device.name] = device
    return tuple(found.values())


def _card(name: str, keys: Keys, money: Money) -> Device:
    if len(name) > MAX_NAME or not fold(name) or not name.isprintable() or '"' in name:
        raise BadFile(f"{keys.file}: the name of a card, {name[:40]!r}, cannot be read.")
    keys.only(KEYS)
    known = _known(name, keys)
    if known is not None:
        for key in OF_ONES_OWN:
            if key in keys:
                said = f"{keys.source(key)} is of a card of one's own, and this is {known.title}."
                raise BadFile(said, "Give yours another name.")
        return _with(known, keys, money)
    own = _with(_own(name, keys), keys, money)
    if own.memory_bytes is None and not own.unified_memory:
        raise BadFile(f"{keys.source()} has no memory.", 'As in memory = "81559MiB".')
    return own


def _known(name: str, keys: Keys) -> Device | None:
    """The shipped device of a name; None where it is a name of one's own.

    Raises:
        BadFile: the name leaves the form open, so that a price would be of the wrong one.
    """
    try:
        return _one_form(name, keys.source())
    except UnknownName as error:
        if {"like", "memory"} & set(keys.table):
            return None
        near = error.hint.partition("See kvplan gpus")[0].strip()
        raise BadFile(
            f"{keys.source()}: {error.message}",
            f"{near} A card of one's own has a vendor and memory, or is like another.".strip(),
        ) from None


def _one_form(name: str, source: str) -> Device:
    """The device of a name that means no other.

    Raises:
        UnknownName: no such device.
        BadFile: a name that leaves the form open, or a slice that the card does not have.
    """
    try:
        device, said = find_device(name)
    except BadValue as error:
        raise BadFile(f"{source}: {error.message}", error.hint) from None
    if said:
        raise BadFile(f"{source}: {said[0]}", "Write the form that is meant.")
    return device


def _own(name: str, keys: Keys) -> Device:
    """What is to be filled in: like a known device, or from nothing."""
    title = keys.text("title") or name
    aliases = keys.texts("aliases", MAX_ALIASES)
    own: dict[str, Any] = {"name": name, "title": title, "aliases": aliases}
    own["sources"] = {"card": keys.source()}
    vendor = keys.read("vendor", _vendor)
    unified = keys.switch("unified-memory")
    if vendor is not None:
        own["vendor"] = vendor
    if unified is not None:
        own["unified_memory"] = unified
    like = keys.text("like")
    if like is None:
        if vendor is None:
            raise BadFile(
                f"{keys.source()} has no vendor, which the rules of engines go by.",
                'As in vendor = "NVIDIA".',
            )
        return Device(**own)
    try:
        base = _one_form(like, keys.source("like"))
    except UnknownName as error:
        raise BadFile(f"{keys.source('like')}: {error.message}", error.hint) from None
    note = f"as {base.name} ({keys.source('like')})"
    noted = {"memory_note": note, "bandwidth_note": note, "usual_for": (), "notes": ""}
    return replace(base, **{**noted, **own}, like=base.kind)


def _vendor(text: str) -> str:
    """A vendor as the table spells it: an engine's rules go by it."""
    known = {device.vendor.lower(): device.vendor for device in devices()}
    if text.lower() not in known:
        raise UnknownName("vendor", text, hint=f"Known: {', '.join(sorted(known.values()))}.")
    return known[text.lower()]


def _with(device: Device, keys: Keys, money: Money) -> Device:
    """The device with the figures and the price that the table says."""
    changed: dict[str, Any] = {}
    sources = dict(device.sources)
    memory = keys.read("memory", parse_bytes)
    if memory is not None:
        changed |= {"memory_bytes": memory, "framework_memory_bytes": None}
        changed["memory_note"] = sources["memory"] = keys.source("memory")
    rate = keys.read("bandwidth", parse_bandwidth)
    if rate is not None:
        changed["bandwidth_bytes_per_s"] = rate
        changed["bandwidth_note"] = sources["bw"] = keys.source("bandwidth")
    link = keys.read("link", parse_bandwidth)
    if link is not None:
        changed |= {"link_bytes_per_s": link, "link": keys.source("link")}
        sources["link"] = keys.source("link")
    peaks = _peaks(keys.within("tflops"))
    if peaks:
        changed["dense_flops"] = {**device.dense_flops, **peaks}
        sources["flops"] = keys.source("tflops")
    watts = keys.number("power", above=0)
    if watts is not None:
        changed["tdp_w"] = watts
        sources["tdp"] = keys.source("power")
    if memory == 0 or rate == 0:
        raise BadFile(f"{keys.source('memory' if memory == 0 else 'bandwidth')} is 0.")
    return replace(device, **changed, price=_price(keys, money), sources=sources)


def _peaks(keys: Keys) -> dict[str, int]:
    """Dense operations a second by type, of figures in 10^12."""
    keys.only(KINDS)
    found = {kind: keys.number(kind, above=0) for kind in keys.table}
    return {kind: int(min(peak or 0.0, MOST) * 1e12) for kind, peak in found.items()}


def _price(keys: Keys, money: Money) -> CardPrice | None:
    amount = keys.number("price")
    if amount is None:
        return None
    return CardPrice(
        per_hour=amount,
        currency=money.currency,
        usd_per_hour=money.in_dollars(amount),
        source=keys.source("price"),
    )
