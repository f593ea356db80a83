"""What one card costs for one hour, and where that is from.

    --price 2.95                              as it was given
    --capital 30000 --life-years 4            owned: capital over its life, and power
      --power-price 0.12 --pue 1.3
    neither                                   one's own price of the device, where it has one
    nor that                                  the cheapest list price of the device, dated

A list price is in US dollars; ``--exchange-rate`` is what one of them is in ``--currency``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvplan.core.device import CardPrice, Device
from kvplan.core.errors import BadValue
from kvplan.core.units import USD, parse_currency, round_up
from kvplan.planning.amounts import parse_share
from kvplan.readers.prices import KINDS, ON_DEMAND, ListPrice, cheapest, providers

GIVEN: Final = "given"
RESERVED: Final = "reserved"
PRICE_KINDS: Final = (*KINDS, RESERVED)
HOURS_A_YEAR: Final = 8766.0  # 365.25 days
USUAL_LIFE_YEARS: Final = 4.0
USUAL_PUE: Final = 1.3
MOST: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One card for one hour in ``currency``, and where that is from.

    ``said`` names it shortly, with its date or that it has none; ``date`` is None then.
    ``instance_gpus`` are the cards of the instance, and ``whole`` says that all are paid.
    """

    per_gpu_hour: float
    currency: str
    kind: str
    said: str
    source: str
    date: str | None = None
    instance_gpus: int | None = None
    whole: bool = False

    def per_hour(self, gpus: int) -> float:
        """So many cards; where instances are paid whole, those of as many as hold them."""
        if self.whole and self.instance_gpus:
            gpus = round_up(gpus, self.instance_gpus)
        return self.per_gpu_hour * gpus

    def to_dict(self) -> dict[str, Any]:
        """What is beside the figure: its kind, source and date."""
        return {"kind": self.kind, "source": self.source, "date": self.date}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """How the hour of a card is priced; what is not given is taken from the list.

    ``discount`` is the share that a reservation takes off the list, ``capital`` the price of one
    card with its part of the host, in ``currency``; ``power_price`` is of one kWh.
    """

    price: float | None = None
    currency: str = USD
    exchange_rate: float | None = None
    kind: str = ON_DEMAND
    discount: float = 0.0
    provider: str = ""
    capital: float | None = None
    life_years: float = USUAL_LIFE_YEARS
    power_price: float = 0.0
    pue: float = USUAL_PUE
    power_w: float | None = None
    whole: bool = False

    @property
    def rate_is_missing(self) -> bool:
        """Whether list prices cannot be told in the currency."""
        given = self.price is not None or self.capital is not None
        return not given and self.currency != USD and self.exchange_rate is None

    def rate(self, device: Device, group: int = 1) -> Rate | None:
        """The hour of one card in a group of ``group``; None where no price is known.

        Raises:
            BadValue: an owned card whose power is paid for and not known.
        """
        if self.price is not None:
            kind = GIVEN if self.kind == ON_DEMAND else self.kind
            return Rate(
                per_gpu_hour=self.price,
                currency=self.currency,
                kind=kind,
                said=GIVEN,
                source="--price",
            )
        if self.capital is not None:
            return self._owned(device, self.capital)
        if device.price is not None and self.takes_own(device):
            return self._own(device.price)
        dollars = self._dollars
        listed = cheapest(
            device.name,
            group,
            kind=ON_DEMAND if self.kind == RESERVED else self.kind,
            provider=self.provider,
            whole=self.whole,
        )
        if not listed or dollars is None:
            return None
        return self._listed(listed, dollars)

    def untold(self, devices: Sequence[Device]) -> Iterator[str]:
        """A sentence where the list's prices, or a device's own, cannot be told in the currency."""
        if self.rate_is_missing and not all(map(self.takes_own, devices)):
            yield f"List prices are in dollars: pass --exchange-rate for {self.currency}."
        for device in devices:
            own = device.price if self.takes_own(device) else None
            if own is not None and self._own(own) is None:
                yield (
                    f"The price of {device.name} is in {own.currency} ({own.source}) and cannot be "
                    f"told in {self.currency}: give exchange-rate there, or --price."
                )
                return

    def takes_own(self, device: Device) -> bool:
        """Whether a device's own price holds: no flag gives another, or asks for the list."""
        given = self.price is not None or self.capital is not None
        of_list = self.kind != ON_DEMAND or self.provider or self.discount
        return device.price is not None and not given and not of_list

    @property
    def _dollars(self) -> float | None:
        """What a dollar is in the currency; None where nobody said."""
        return 1.0 if self.currency == USD else self.exchange_rate

    def _own(self, price: CardPrice) -> Rate | None:
        """One's own price in the currency; None where it cannot be told."""
        amount: float | None = price.per_hour
        if price.currency != self.currency:
            dollars, usd = self._dollars, price.usd_per_hour
            amount = None if usd is None or dollars is None else usd * dollars
        if amount is None:
            return None
        return Rate(
            per_gpu_hour=amount,
            currency=self.currency,
            kind=GIVEN,
            said=price.source.rpartition(": ")[0],
            source=f"{price.source} = {price.per_hour:g} {price.currency}",
        )

    def _listed(self, row: ListPrice, dollars: float) -> Rate:
        less = f" less {self.discount:.0%}" if self.discount else ""
        rate = f" × {dollars:g}" if self.currency != USD else ""
        return Rate(
            per_gpu_hour=row.usd_per_gpu_hour * (1 - self.discount) * dollars,
            currency=self.currency,
            kind=self.kind,
            said=f"{row.provider} {self.kind}{less}, {row.date or 'undated'}",
            source=(
                f"{row.provider} {row.instance}, {row.region}: {row.usd_per_gpu_hour:g} USD a card"
                f"{less}{rate}; {row.said}; {row.source}"
            ),
            date=row.date,
            instance_gpus=row.gpus,
            whole=self.whole,
        )

    def _owned(self, device: Device, capital: float) -> Rate:
        watts = device.tdp_w if self.power_w is None else self.power_w
        if watts is None and self.power_price:
            raise BadValue(
                f"What {device.title} draws is not known.", "Pass --power-watts of one card."
            )
        bought = capital / (self.life_years * HOURS_A_YEAR)
        power = (watts or 0.0) / 1000 * self.pue * self.power_price
        drawn = f" + {watts:g} W × {self.pue:g} × {self.power_price:g} a kWh" if power else ""
        return Rate(
            per_gpu_hour=bought + power,
            currency=self.currency,
            kind="owned",
            said="owned",
            source=f"{capital:,.0f} over {self.life_years:g} years{drawn}",
        )


LIST: Final = Pricing()


def pricing_of(
    *,
    price: float | None = None,
    currency: str = USD,
    exchange_rate: float | None = None,
    price_kind: str = ON_DEMAND,
    discount: float | str | None = None,
    provider: str | None = None,
    capital: float | None = None,
    life_years: float | None = None,
    power_price: float | None = None,
    pue: float | None = None,
    power_watts: float | None = None,
    whole_instances: bool = False,
) -> Pricing:
    """The flags of money, read and checked.

    Raises:
        BadValue: a price, a rate or a kind that cannot be.
    """
    if price_kind not in PRICE_KINDS:
        known = ", ".join(PRICE_KINDS)
        raise BadValue(f"--price-kind {str(price_kind)[:40]!r} is not one of {known}.")
    off = 0.0 if discount is None else parse_share(discount, "--discount", "0.4 or 40%")
    if price_kind == RESERVED and price is None and capital is None and not off:
        raise BadValue(
            "No reserved price is listed.", "Pass --price, or --discount off the on-demand list."
        )
    said = (provider or "").strip()
    if said and not any(said.lower() in name.lower() for name in providers()):
        raise BadValue(f"No prices of {said[:40]!r} are listed.", f"Of: {', '.join(providers())}.")
    found = Pricing(
        price=_figure(price, "--price", "a price of one card for one hour"),
        currency=parse_currency(currency, "--currency"),
        exchange_rate=_figure(exchange_rate, "--exchange-rate", "a rate", above=0),
        kind=price_kind,
        discount=off,
        provider=said,
        capital=_figure(capital, "--capital", "the price of a card"),
        life_years=_or(life_years, "--life-years", "a life in years", USUAL_LIFE_YEARS, above=0),
        power_price=_or(power_price, "--power-price", "a price of one kWh", 0.0),
        pue=_or(pue, "--pue", "a power usage effectiveness", USUAL_PUE, above=0.99),
        whole=bool(whole_instances),
        power_w=_figure(power_watts, "--power-watts", "the power of a card"),
    )
    owned = {"--life-years": life_years, "--power-price": power_price, "--pue": pue,
             "--power-watts": power_watts}  # fmt: skip
    _check_one_way(found, owned)
    return found


def _check_one_way(found: Pricing, owned: Mapping[str, object]) -> None:
    """A card's hour is priced in one way; what belongs to another would be left out unseen."""
    if found.price is not None and found.capital is not None:
        raise BadValue("--price and --capital both price a card.", "Give one of them.")
    if found.discount and (found.price is not None or found.capital is not None):
        raise BadValue("--discount is off the list, and a price is given.", "Give one of them.")
    stray = next((flag for flag, value in owned.items() if value is not None), None)
    if stray is not None and found.capital is None:
        raise BadValue(f"{stray} is of a card that is owned.", "Pass --capital too; it may be 0.")


def _figure(given: object, flag: str, what: str, above: float = -1.0) -> float | None:
    """A finite number from 0, or from more than ``above``."""
    if given is None:
        return None
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not (0 <= given < MOST and given > above):  # type: ignore[operator]
        raise BadValue(f"{flag} {str(given)[:40]} is not {what}.")
    return float(given)  # type: ignore[arg-type]


def _or(given: object, flag: str, what: str, usual: float, above: float = -1.0) -> float:
    found = _figure(given, flag, what, above)
    return usual if found is None else found
