"""How fast a plan is: the bound that no step beats, and the estimate with its error.

    bound(plan)      → StepCost                 bytes over bandwidth, operations over peak
    estimate(plan)   → Estimate(cost, error)    the same terms at the rates that engines reach

Both are of one replica, and None where the weights or the card's bandwidth are not known.
"""

from kvplan.planning.speed.bound import bound
from kvplan.planning.speed.estimate import Estimate, estimate
from kvplan.planning.speed.floor import SpeedBound, speed_bound

__all__ = ["Estimate", "SpeedBound", "bound", "estimate", "speed_bound"]
