"""Write the device and price tables of the package from their source files.

    python tools/import_hardware.py gpus.jsonl prices.jsonl src/kvplan/data

One line a device and one a price, with where each figure is from; a figure without a source is
left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# The plain name of a device where the first of its aliases is not the one people use.
NAMES = {
    "V100 SXM2 32GB": "v100-sxm-32gb",
    "V100 SXM2 16GB": "v100-sxm-16gb",
    "A100 SXM4 40GB": "a100-sxm-40gb",
    "A100 SXM4 80GB": "a100-sxm-80gb",
    "A800 SXM4 80GB": "a800-sxm-80gb",
    "H100 SXM5": "h100-sxm-80gb",
    "H100 PCIe": "h100-pcie-80gb",
    "H100 NVL 94GB": "h100-nvl",
    "H800 SXM5": "h800-sxm-80gb",
    "H200 SXM": "h200",
    "H20 96GB": "h20",
    "H20-3e 141GB": "h20-141gb",
    "GH200 96GB HBM3": "gh200",
    "GH200 144GB HBM3e": "gh200-144gb",
    "B200 SXM": "b200",
    "B300 SXM": "b300",
    "GB200 (per GPU)": "gb200",
    "GB300 (per GPU)": "gb300",
    "GB10 (DGX Spark)": "gb10",
    "RTX PRO 6000 Blackwell (Workstation)": "rtx-pro-6000",
    "RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-server",
    "RTX PRO 6000 Blackwell Max-Q": "rtx-pro-6000-max-q",
    "RTX PRO 5000 Blackwell 48GB": "rtx-pro-5000",
    "RTX PRO 5000 Blackwell 72GB": "rtx-pro-5000-72gb",
    "RTX PRO 4500 Blackwell": "rtx-pro-4500",
    "Jetson AGX Thor": "jetson-thor",
    "Jetson AGX Orin 64GB": "jetson-orin",
    "Radeon RX 7900 XTX": "rx-7900-xtx",
    "Radeon RX 9070 XT": "rx-9070-xt",
    "Data Center GPU Max 1550": "max-1550",
    "TPU v6e (Trillium)": "tpu-v6e",
    "TPU v7x (Ironwood)": "tpu-v7x",
    "Apple M3 Max (40-core)": "apple-m3-max",
    "Apple M4 Max (40-core)": "apple-m4-max",
    "Apple M5 Max": "apple-m5-max",
    "Apple M5 Max (32-core)": "apple-m5-max-32core",
    "Apple M4 Max (32-core)": "apple-m4-max-32core",
    "Strix Halo (Radeon 8060S, 128 GB)": "strix-halo",
}
UNIFIED = ("GB10", "Jetson", "Strix", "Apple", "Ryzen")


def device(row: dict[str, Any]) -> dict[str, Any]:
    """One device in bytes, bytes a second and operations a second."""
    name = NAMES.get(row["name"], row["aliases"][0])
    found: dict[str, Any] = {
        "name": name,
        "title": row["name"],
        "vendor": row["vendor"],
        "aliases": sorted({*row["aliases"], row["name"]} - {name}),
        "usual_for": row.get("default_for", []),
        "memory_bytes": scaled(row["reported_memory_mib"], 1 << 20),
        "framework_memory_bytes": scaled(row.get("framework_total_gib"), 1 << 30),
        "bandwidth_bytes_per_s": scaled(row["mem_bw_gbs"], 10**9),
        "dense_flops": {k: scaled(v, 10**12) for k, v in row["dense_tflops"].items() if v},
        "link_bytes_per_s": scaled(row["interconnect_gbs_unidirectional"], 10**9),
        "link": row.get("interconnect"),
        "tdp_w": row["tdp_w"],
        "devices_per_card": row.get("devices_per_card", 1),
        "unified_memory": any(word in row["name"] for word in UNIFIED),
        "memory_note": row.get("reported_note"),
        "notes": (row.get("notes") or "").replace(" in this session", "") or None,
        "sources": row["sources"],
    }
    for key in ("gpu_working_set_mib_by_ram_gb", "gpu_working_set_mib_by_ram_gb_older_macos"):
        if key in row:
            found[key] = row[key]
    return {key: value for key, value in found.items() if value not in (None, [], {})}


def scaled(value: float | None, unit: int) -> int | None:
    """A figure in its base unit."""
    return None if value is None else round(value * unit)


def lines(path: str) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """A JSON list with a row a line."""
    text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{text}\n]\n", encoding="utf-8")


# Any CPU: engines that run on it need to be told of nothing but its memory.
CPU = {
    "name": "cpu", "title": "CPU", "vendor": "CPU", "aliases": ["CPU"], "devices_per_card": 1,
    "unified_memory": False, "notes": "any CPU: --gpu-memory is the memory of one NUMA node",
    "sources": {},
}  # fmt: skip


def main(gpus: str, prices: str, folder: str) -> None:
    """Write devices.json and prices.json."""
    devices = [CPU, *(device(row) for row in lines(gpus))]
    names = {row["title"]: row["name"] for row in devices}
    priced = [row | {"device": names.get(row["gpu"])} for row in lines(prices)]
    write(Path(folder) / "devices.json", sorted(devices, key=lambda row: row["name"]))
    write(Path(folder) / "prices.json", priced)
    print(f"{len(devices)} devices, {len(priced)} prices -> {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
