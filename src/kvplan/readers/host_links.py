"""The link from a card to its host's memory, one way: what a cache is loaded back over.

Where a card's table lists a PCIe slot, that is it; of cards with a fabric of their own the slot is
here, and of superchips the link between the chips. Rates are those of the device table: PCIe 3.0,
4.0 and 5.0 × 16 carry 15.75, 31 and 63 GB/s one way.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.device import Device

PCIE3, PCIE4, PCIE5 = 15_750_000_000, 31_000_000_000, 63_000_000_000


class HostLink(NamedTuple):
    """Bytes a second one way, and what is known from where."""

    bytes_per_s: int
    source: str


# Data sheets of NVIDIA (V100, A100, H100, H200, DGX B200, GH200) and AMD (MI250, MI300, MI350).
LINKS: Final = (
    (("v100-sxm",), PCIE3, "PCIe 3.0 x16, NVIDIA's data sheet"),
    (("a100-sxm", "a800-sxm"), PCIE4, "PCIe 4.0 x16, NVIDIA's data sheet"),
    (("h100-sxm", "h800-sxm", "h200", "h20", "b200"), PCIE5, "PCIe 5.0 x16, NVIDIA's data sheet"),
    (("gh200",), 450_000_000_000, "NVLink-C2C, 900 GB/s both ways, NVIDIA's data sheet"),
    (("mi250",), PCIE4, "PCIe 4.0 x16, AMD's data sheet"),
    (("mi300x", "mi325x", "mi350x", "mi355x"), PCIE5, "PCIe 5.0 x16, AMD's data sheet"),
)


def host_link(device: Device) -> HostLink | None:
    """The link of a device; None where it is not known, or where the memory is the host's own."""
    if device.unified_memory:
        return None
    for names, rate, source in LINKS:
        if device.kind.startswith(names):
            return HostLink(rate, source)
    if device.link_bytes_per_s and device.link.startswith("PCIe"):
        return HostLink(device.link_bytes_per_s, device.link.partition(",")[0])
    return None
