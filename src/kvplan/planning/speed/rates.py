"""How much of a card's peaks an engine reaches, and what a step costs besides."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one engine on one card, for one model's types.

    Shares of the bandwidth: ``share_read`` for dense matrices, ``share_experts`` for drawn experts,
    ``share_cache``. Of the dense peak: ``share_dense``, ``share_products`` (of experts),
    ``share_attention``. Of the link: ``share_link``.

    Seconds that no byte and no operation explains: ``step_s`` of a step, ``layer_s`` of each layer,
    ``mixed_s`` of each with experts on top, ``sequence_s``, ``message_s`` of a message between two
    ranks and ``turn_s`` where it goes round twice; ``hop_s`` of the way from a card to the next
    where layers are taken in turn;
    ``launch_s`` of each layer of a step with prompts, whose kernels are launched one by one while
    earlier ones run;
    ``request_s`` of a request on its way in and out, ``prompt_s`` of each token of its prompt then.

    ``passes`` is how often what lies between two products goes through memory.

    ``spread`` says how unlike the tokens of a step are in the experts that they draw: 1 is evenly,
    0 all the same. ``uneven`` is how much longer experts that are dealt out whole take for the
    fullest of many ranks. ``sharpness`` says how suddenly a kernel turns from reading to computing,
    ``experts_sharpness`` one of experts.
    ``bubble`` is the part of a stage's time that each further stage of a pipeline loses.

    What becomes of a prompt that arrives: ``waves`` is the part of all prompts' time that clients
    with equal lengths wait for before their own first token, where prompts go before decoding, and
    ``drawn_waves`` the same of drawn lengths; ``lockstep`` how much a prompt on one rank of a
    lock-step group holds up the others (group size to this power).
    """

    share_read: float = 1.0
    share_experts: float = 1.0
    share_cache: float = 1.0
    share_dense: float = 1.0
    share_products: float = 1.0
    share_attention: float = 1.0
    share_link: float = 1.0
    step_s: float = 0.0
    layer_s: float = 0.0
    mixed_s: float = 0.0
    sequence_s: float = 0.0
    message_s: float = 0.0
    hop_s: float = 0.0
    turn_s: float = 0.0
    launch_s: float = 0.0
    request_s: float = 0.0
    prompt_s: float = 0.0
    passes: float = 0.0
    spread: float = 1.0
    sharpness: float = inf
    experts_sharpness: float = inf
    uneven: float = 0.0
    bubble: float = 0.0
    waves: float = 0.5
    drawn_waves: float = 0.0
    lockstep: float = 0.0


IDEAL: Final = Rates()
SHARES: Final = tuple(name for name in Rates.__dataclass_fields__ if name.startswith("share_"))
TIMES: Final = tuple(name for name in Rates.__dataclass_fields__ if name.endswith("_s"))
