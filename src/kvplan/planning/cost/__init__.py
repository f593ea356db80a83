"""Money: the hour of a card (rented, reserved, owned), and what a plan makes of it."""

from __future__ import annotations

from kvplan.planning.cost.of_plan import Cost, cost_of
from kvplan.planning.cost.pricing import GIVEN, Pricing, Rate

__all__ = ["GIVEN", "Cost", "Pricing", "Rate", "cost_of"]
