"""The loop of a program that adapts: observe, decide, plan, execute."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional

import evoslurm as now
from evoslurm import Offer, Step

__all__ = ["Adaptive", "Change"]

log = logging.getLogger("evoslurm")


@dataclass(frozen=True)
class Change:
    """A change of the job's nodes that is due."""
    kind: str  # next (the planned step), grow or shrink (decided), accept (an offer or a demand)
    nodes: int  # of the job after it; a growth may bring fewer
    leaving: tuple[str, ...] = ()  # the application must leave these nodes first
    offer: Optional[Offer] = None


class Adaptive:
    """Adapts a program to its job's nodes, and the job to the program's wishes. The program calls point()
    between two pieces of work. At most every `every` seconds it looks at the plan, and calls

        observe(step)         returns what the program sees, such as its load (by default None)
        decide(step, seen)    returns how many nodes the program wants from now on; None: as planned
        plan(step, change)    leaves the nodes of change.leaving; if it returns False, the program is not off
                              them yet: the next point() calls it again
        execute(step, change) goes on with the nodes of the new step

    Each is optional. A planned step begins `ahead` seconds before its time. What decide wants is grown or
    shrunk on demand, as far as it can be had; a refusal is logged once and changes nothing. With `offers`, a
    look of a malleable job waits that many seconds for an offer or a demand, and takes it as decide wants.

        nodes = evoslurm.Adaptive(decide=lambda step, seen: len(queue) // 10)
        while queue:
            work(nodes.point())

    The loop is that of DYNACO (Buisson, Sonmez, Mohamed, Lammers, Epema 2007, section IV-B). A look takes one
    process of evosctl, or two with offers. Raises Error as the calls of this module do."""

    def __init__(self, observe: Callable[[Step], Any] = lambda step: None, decide: Callable[[Step, Any], Optional[int]] = lambda step, seen: None,
                 plan: Callable[[Step, Change], Any] = lambda step, change: None, execute: Callable[[Step, Change], Any] = lambda step, change: None,
                 every: float = 1.0, ahead: float = 2.0, offers: float = 0.0):
        self.observe, self.decide, self.plan, self.execute = observe, decide, plan, execute
        self.every, self.ahead, self.offers = every, ahead, offers
        self.step = now.current()
        self.due: Optional[Change] = None  # what plan has not made way for yet
        self._look_at, self._after, self._refused, self._done = 0.0, 0, False, False

    @property
    def leaving(self) -> tuple[str, ...]:
        """The nodes that the program must leave for the change that is due."""
        return self.due.leaving if self.due else ()

    def point(self) -> Step:
        """Adapts if a change is due, and returns the step that the job is in."""
        if time.monotonic() >= self._look_at and not self._done:
            self._look()
            self._look_at = time.monotonic() + self.every
        change = self.due
        if change and self.plan(self.step, change) is not False:
            self.due = None
            self._carry_out(change)
        return self.step

    def run(self, working: Callable[[], bool]) -> None:
        """Calls point() while working() is true: for a program that adapts beside those that work."""
        while working():
            self.point()
            time.sleep(min(self.every, 0.1))

    def _look(self) -> None:
        wanted = self.decide(self.step, self.observe(self.step))
        if not (self.due and self.due.offer):  # an offer stands until it is answered
            self.due = self._offered(wanted) or self._planned() or self._wanted(wanted)

    def _offered(self, wanted: Optional[int]) -> Optional[Change]:
        if not self.offers:
            return None
        try:
            offer = now.wait_event(self._after, self.offers)
        except now.Timeout:
            return None
        self._after, has = offer.id, len(self.step.nodes)
        if offer.kind == "shrink":
            return Change("accept", has - offer.nodes, offer.names, offer)
        take = offer.nodes if wanted is None else min(offer.nodes, wanted - has)
        if take > 0:
            return Change("accept", has + take, (), offer)
        now.decline(offer)
        return None

    def _planned(self) -> Optional[Change]:
        coming = now.peek()
        if not coming or not coming.at or coming.at.timestamp() - time.time() >= self.ahead:
            return None
        return Change("next", coming.nodes, coming.leaving)

    def _wanted(self, wanted: Optional[int]) -> Optional[Change]:
        has = self.step.nodes
        if wanted is None or wanted == len(has):
            return None
        least = max(wanted, 1)  # the node of the job's script stays
        return Change("grow", wanted) if wanted > len(has) else Change("shrink", least, has[least:]) if least < len(has) else None

    def _carry_out(self, change: Change) -> None:
        step: Optional[Step]
        try:
            if change.offer:
                step = now.accept(change.offer, abs(change.nodes - len(self.step.nodes)))
            elif change.kind == "next":
                step = now.next(self.step)
            elif change.kind == "grow":
                step = now.grow(change.nodes - len(self.step.nodes), least=1)
            else:
                step = now.shrink(names=change.leaving)
        except now.Error as refusal:
            if not change.offer and not isinstance(refusal, now.Refused):
                raise
            if not self._refused:
                log.warning("%s", refusal)
            self._refused = True
            if not change.offer:
                return
            step = now.current()  # the offer is over, and the nodes of a mandatory demand are gone
        else:
            self._refused, self._done = False, step is None
        if step:
            self.step = step
            self.execute(step, change)
