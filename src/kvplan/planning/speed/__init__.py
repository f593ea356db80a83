"""How fast a plan is: the bound that no step beats, and the estimate with its error.

    bound(plan)      → StepCost                 bytes over bandwidth, operations over peak
    estimate(plan)   → Estimate(cost, error)    the same terms at the rates that engines reach

Both are of one replica, and None where the weights or the card's bandwidth are not known.
"""

from kvplan.planning.speed.bound import bound
from kvplan.planning.speed.estimate import Estimate, estimate
from kvplan.planning.speed.figures import NO_WORKLOAD, SpeedEstimate, Workload, workload_of
from kvplan.planning.speed.floor import SpeedBound, speed_bound
from kvplan.planning.speed.growth import overtakes, point, saturates
from kvplan.planning.speed.serving import Served
from kvplan.planning.speed.speculation import Drafting, drafted
from kvplan.planning.speed.transfer import disaggregated

__all__ = [
    "NO_WORKLOAD",
    "Drafting",
    "Estimate",
    "Served",
    "SpeedBound",
    "SpeedEstimate",
    "Workload",
    "bound",
    "disaggregated",
    "drafted",
    "estimate",
    "overtakes",
    "point",
    "saturates",
    "speed_bound",
    "workload_of",
]
