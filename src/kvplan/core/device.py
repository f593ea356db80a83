"""A device: the memory its driver reports, how fast it reads it, how fast it computes.

Memory is what the driver or runtime prints (an H100's 81,559 MiB), never the 80 GB of the box:
a card's marketing figure is neither GB nor GiB of what a program can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPrice:
    """One's own price of one card for one hour, and where it is said.

    ``usd_per_hour`` is the same in dollars, None where no exchange rate is said beside it.
    """

    per_hour: float
    currency: str
    usd_per_hour: float | None
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Its figures."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as its driver lists it.

    ``memory_bytes`` is the reported total; ``framework_memory_bytes`` the total that torch sees,
    where it was observed; bandwidth and peaks are the vendor's figures, dense. None is unknown.
    ``sliced`` is a part of a card (MIG). ``gpu_working_set_mib_by_ram_gb`` is what a system with
    unified memory gives its GPU by default, by the RAM installed. A card of one's own may be
    ``like`` one of the table, whose rules then hold for it, and have its ``price``.
    """

    name: str
    title: str
    vendor: str = ""
    memory_bytes: int | None = None
    framework_memory_bytes: int | None = None
    bandwidth_bytes_per_s: int | None = None
    dense_flops: Mapping[str, int] = field(default_factory=dict)
    link_bytes_per_s: int | None = None
    link: str = ""
    tdp_w: float | None = None
    devices_per_card: int = 1
    unified_memory: bool = False
    sliced: bool = False
    gpu_working_set_mib_by_ram_gb: Mapping[str, int] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    usual_for: tuple[str, ...] = ()
    memory_note: str = ""
    bandwidth_note: str = ""
    like: str = ""
    price: CardPrice | None = None
    notes: str = ""
    sources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The name of the table's card that rules for it go by."""
        return self.like or self.name
