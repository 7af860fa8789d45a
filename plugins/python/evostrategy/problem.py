"""What a strategy is given, and what it answers. Times are whole seconds."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
import re

NEVER = 2**63 - 1
INFINITE = float("inf")


COMPLETION, WASTE, NODE_SECONDS = 0, 1, 2


@dataclass(frozen=True)
class Job:
    """A job to place: it starts at `submit` or later."""

    submit: int
    steps: tuple  # of (duration, nodes)
    expand_limit: float  # 0: the strategy's
    alternatives: tuple = ()  # of steps, which a moldable job may have in place of these
    prefers: int = COMPLETION  # of them: the one that completes first, WASTE least, or costs the fewest NODE_SECONDS

    def choices(self):
        """The job as it is with its own steps, and with each of its alternatives."""
        return [replace(self, steps=steps, alternatives=()) for steps in (self.steps, *self.alternatives)]

    def cost(self, placed):
        """What it minimises: the placement with the least is the one that it prefers."""
        steps = self.choices()[placed.choice].steps
        held = sum(duration * nodes for duration, (_, nodes) in zip(placed.durations, steps))
        used = sum(duration * nodes for duration, nodes in steps)
        end = placed.start + sum(placed.durations)
        first = {WASTE: Fraction(held - used, used), NODE_SECONDS: held}.get(self.prefers, 0)
        return first, end, held, placed.choice

    def longest(self, k, limit=1.0):
        """The longest time for which step k may be held."""
        duration = self.steps[k][0]
        if k == len(self.steps) - 1:
            return duration
        limit = self.expand_limit or limit
        if limit == INFINITE:
            return NEVER
        # exact for limits of up to six decimals: 1.15 of 100 is 115
        return max(duration, duration * round(limit * 1_000_000) // 1_000_000)


@dataclass(frozen=True)
class Placement:
    """The placement of a job: its start, and how long each step is held."""

    start: int
    durations: tuple
    choice: int = 0  # 0: by its own steps, 1: by its first alternative, …


@dataclass(frozen=True)
class Unfit:
    """The answer for an infeasible job."""

    reason: str = "there is no time at which its nodes are free for long enough"


POWER_ON, POWER_UP, POWERED_DOWN, POWER_DOWN, POWER_DRAIN = range(5)


@dataclass(frozen=True)
class NodeSet:
    """Nodes that are alike."""

    nodes: int
    free: int  # of these, the nodes that no job uses now
    switches: tuple  # from the leaf switch or base block upwards; empty: none is known
    weight: int  # Slurm takes nodes of less weight first
    features: tuple
    power: int  # POWER_ON, POWER_UP (powering up), POWERED_DOWN, POWER_DOWN (powering down), or POWER_DRAIN (soon)
    ready: int = 0  # of nodes that are not up: when the free ones could run a job; they are busy until then


@dataclass
class Request:
    """What is planned."""

    nodes: int
    now: int
    deadline: float  # seconds in which to answer
    busy: list  # of (start, duration, nodes); pinned jobs are part of it
    jobs: list  # of Job, most urgent first
    pinned: list = field(default_factory=list)  # of (start, steps): jobs that run
    sets: list = field(default_factory=list)  # of NodeSet, for a strategy with node_sets; a node may be in none


GROW, SHRINK, BALANCE = 1, 2, 3


@dataclass
class MalleableJob:
    """A running malleable job: it can have `min` to `max` nodes."""

    nodes: int  # allocated now
    min: int
    max: int
    start: int
    sizes: int = 0  # that it can use: 0 any, -1 powers of two, k multiples of k
    fixed: bool = False  # it stays as it is
    points: tuple = ()  # of (nodes, speed-up), by ascending nodes; empty: not known

    def floor(self, nodes):
        """The largest size that it can use of at most so many nodes; 0 if there is none."""
        if nodes < 1:
            return 0
        if self.sizes < 0:
            return 1 << (nodes.bit_length() - 1)
        return nodes - nodes % self.sizes if self.sizes else nodes

    def next(self):
        """The size after the present one; None at the maximum."""
        nodes = self.nodes + 1
        if self.sizes < 0:
            nodes = 1 << (nodes - 1).bit_length()
        elif self.sizes:
            nodes = -(-nodes // self.sizes) * self.sizes
        return nodes if nodes <= self.max else None

    def previous(self):
        """The size before the present one; None at the minimum."""
        nodes = self.floor(self.nodes - 1)
        return nodes if nodes >= self.min else None


@dataclass
class ResizeRequest:
    """Who is to grow, or to shrink. See the contract for what each change asks."""

    change: int  # GROW by up to `by` nodes in all, SHRINK by at least so many, or BALANCE
    by: int
    mandatory: bool  # others are in need of the nodes: as many as can be, up to `by`
    nodes: int  # of the cluster
    now: int
    deadline: float
    free: int
    waiting: list  # nodes that waiting jobs need to start, in the order of the queue
    jobs: list  # of MalleableJob, by increasing start time; yours to change


@dataclass(frozen=True)
class Parameter:
    """A parameter that sites may set. The default's Python type is its type."""

    name: str
    default: object  # bool, int, float or str
    help: str
    min: object = None
    max: object = None
    choices: tuple = ()

    def parse(self, text):
        """The value that a text stands for; ValueError if it is none."""
        if isinstance(self.default, bool):
            values = {"true": True, "false": False, "1": True, "0": False}
            if text.lower() not in values:
                raise ValueError(f"{self.name}: {text!r}; want true or false")
            return values[text.lower()]
        if isinstance(self.default, int):
            if not re.fullmatch(r"[+-]?[0-9]+", text):
                raise ValueError(f"{self.name}: {text!r}; want an integer")
            value = int(text)
        elif isinstance(self.default, float):
            try:
                value = float(text)
            except ValueError:
                value = float("nan")
            if value != value:
                raise ValueError(f"{self.name}: {text!r}; want a number")
        else:
            if self.choices and text not in self.choices:
                raise ValueError(f"{self.name}: {text!r}; want one of {', '.join(self.choices)}")
            return text
        if self.min is not None and value < self.min or self.max is not None and value > self.max:
            raise ValueError(f"{self.name}: {text}; want {self.min} … {self.max}")
        return value


class Strategy:
    """Derive from this: set the attributes and write plan(), or resize(), or both."""

    name = ""
    version = "1"
    help = ""
    parameters = ()  # of Parameter
    moldable = False  # plan() chooses among jobs' alternatives; else they are settled before
    node_sets = False  # plan() uses request.sets

    def expand_limit(self, values):
        """The limit of jobs that have none of their own; 0: the site's."""
        return 0

    def plan(self, request, values):
        """A Placement, or an Unfit, for every job of the request, in its order.

        `values` has the parameters' values by name. Equal requests must get
        equal answers.
        """
        raise NotImplementedError

    def resize(self, request, values):
        """A number of nodes for every job of a ResizeRequest, in its order.

        All grow, or all shrink; who stays as it is has its `nodes` as they were.
        """
        raise NotImplementedError
