"""The flags that several verbs have, spelled once."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from kvplan.core.errors import BadValue

Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show the arithmetic and its sources.")]
Output = Annotated[
    str | None,
    typer.Option("--output-file", "-o", help="Write to a file: .json .csv .md .html .png .svg."),
]
Offline = Annotated[
    bool, typer.Option("--offline", envvar="KVPLAN_OFFLINE", help="Never ask the hub.")
]
KvDtype = Annotated[
    str, typer.Option("--kv-dtype", help="Storage format of the cache: bf16, fp8, q8_0, int4 …")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Replace a config key: --set num_key_value_heads=32. Repeatable."),
]
Calibration = Annotated[
    str | None,
    typer.Option("--calibration", help="A folder of kvplan measure: estimate by what it measured."),
]
Assume = Annotated[
    str,
    typer.Option("--assume", help="'full': size an unknown type as full attention in each layer."),
]
EncoderTokens = Annotated[
    str | None,
    typer.Option("--encoder-tokens", help="Length of the encoder, for cross-attention models."),
]

Price = Annotated[
    float | None,
    typer.Option("--price", help="Of one card for one hour. Default: the cheapest list price."),
]
Currency = Annotated[str, typer.Option("--currency", help="Of every price.")]
ExchangeRate = Annotated[
    float | None,
    typer.Option("--exchange-rate", help="Of the currency for a dollar: list prices are in USD."),
]
PriceKind = Annotated[str, typer.Option("--price-kind", help="on-demand, spot or reserved.")]
Discount = Annotated[
    str | None, typer.Option("--discount", help="A reservation's, off the list: 40%.")
]
Provider = Annotated[str | None, typer.Option("--provider", help="Whose list prices.")]
Capital = Annotated[
    float | None, typer.Option("--capital", help="Of one owned card, with its part of the host.")
]
LifeYears = Annotated[
    float | None, typer.Option("--life-years", help="Of an owned card. Default: 4.")
]
PowerPrice = Annotated[float | None, typer.Option("--power-price", help="Of one kWh.")]
Pue = Annotated[
    float | None, typer.Option("--pue", help="Power of the site over the cards'. Default: 1.3.")
]
PowerWatts = Annotated[
    float | None, typer.Option("--power-watts", help="Of one card. Default: its board power.")
]


def parse_overrides(given: list[str] | None) -> dict[str, Any]:
    """``key=value`` pairs; a value is JSON where it reads as such, else a text.

    Raises:
        BadValue: no ``=``, an empty key, or a value of more than 64 KiB.
    """
    found: dict[str, Any] = {}
    for pair in given or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or len(pair) > 1 << 16:
            raise BadValue(f"--set {pair[:60]!r} is not key=value.", "As in --set head_dim=128.")
        try:
            found[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            found[key.strip()] = value
    return found
