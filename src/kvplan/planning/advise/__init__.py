"""What to rent: every card, layout and format that is allowed, against the goals of those who come.

goal       who comes, how long, how fast, for how much      load      requests on one replica
search     every candidate, planned once by its engine      outcome   a candidate on N replicas
frontier   cost against latency                             relax     which goal to give up
"""

from __future__ import annotations

from kvplan.planning.advise.advise import advise
from kvplan.planning.advise.answer import AdviseAnswer

__all__ = ["AdviseAnswer", "advise"]
