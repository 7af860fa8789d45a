"""An evolving job from the inside, in Python.

    import evoslurm, subprocess

    for step in evoslurm.steps():
        subprocess.run(["evosrun", "./amr", f"--phase={step.number}"], check=True)

steps() begins with the step that the job is in and ends each when the next one is asked
for. Who is killed and started again goes on with the step that the job is in then: none is
lost, none is ended twice. The same as coroutines: evoslurm.aio. A program that goes on while its nodes
change, or that wants more or fewer of them, adapts with Adaptive.

A call is one of "evosctl ... --json", not a request to the sidecar: what a caller must prove
with MUNGE takes a process anyway (munge), and the configuration, the processes of evosrun
--follow and the job's hooks are evosctl's business, which is then done in one way.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterator, Mapping, Optional, Sequence, TypeVar

if TYPE_CHECKING:
    from typing import ParamSpec  # of Python 3.10

    P = ParamSpec("P")

__all__ = ["Step", "Part", "Coming", "Offer", "Event", "Error", "Refused", "Timeout", "current", "next", "peek", "steps",
           "grow", "shrink", "wait_event", "offers", "accept", "decline", "events", "progress", "aio", "Adaptive", "Change"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
EVOSCTL = "evosctl"  # the command, or its path


class Error(Exception):
    """evosctl failed; status is its exit status."""
    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.status = status


class Refused(Error):
    """A growth or shrink cannot be had; nothing has changed. The text says why, and when it could."""


class Timeout(Error):
    """What was waited for did not come in time: nodes, which to call next again goes on waiting for, or an offer."""


@dataclass(frozen=True)
class Part:
    """The share of one Slurm job: all of it, but in drive mode companion."""
    job: int
    nodes: tuple[str, ...]
    cpus: tuple[int, ...]  # of each


@dataclass(frozen=True)
class Coming:
    """The next step, as it is planned at the moment."""
    number: int
    nodes: int
    at: Optional[datetime.datetime]  # None: it is planned once the present step has ended
    arriving: tuple[str, ...]
    leaving: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """What the job has in a step."""
    job: int
    number: int  # from 1
    steps: int
    drive: str
    parts: tuple[Part, ...]
    note: str = ""
    coming: Optional[Coming] = None
    environ: Mapping[str, Optional[str]] = field(default_factory=dict, repr=False)  # None: to be unset
    lost: tuple[str, ...] = ()  # nodes that failed since the call before; what ran there has ended, even if nodes has them again
    restarts: int = 0  # how often Slurm put the job, or a link of its chain, back into the queue

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes, those of the base job first."""
        return tuple(node for part in self.parts for node in part.nodes)

    def apply(self) -> None:
        """Makes this step that of os.environ: evosrun, srun and MPI launchers see its nodes.
        All functions here that give a present step have done it."""
        for name, value in self.environ.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class Offer:
    """Nodes that a malleable job may have for a while, or that it is to give back."""
    job: int
    id: int
    kind: str  # grow or shrink
    mandatory: bool  # the nodes are taken at the deadline, whatever the answer
    nodes: int  # to be had at most, or wanted back at least
    names: tuple[str, ...]  # these
    further: tuple[str, ...]  # would go after them, if more are given back
    has: int  # nodes that the job had when it was made
    deadline: datetime.datetime  # until which it may be answered
    why: str
    until: Optional[datetime.datetime] = None  # by when offered nodes must be left for the next job planned on them


@dataclass(frozen=True)
class Event:
    """What has happened to the job, or to the sidecar (job is 0)."""
    id: int
    at: datetime.datetime
    job: int
    kind: str
    detail: Any
    text: str


class _Call(Generic[T]):
    """A call of evosctl, and what is made of its answer."""

    def __init__(self, read: Callable[[Any], T], *words: str, **options: object):
        given = [f"--{name.rstrip('_')}={value}" for name, value in options.items() if value]
        self.read, self.words = read, [EVOSCTL, *words[:1], *given, *words[1:]]


def _sync(call: Callable[P, _Call[T]]) -> Callable[P, T]:
    def now(*args: P.args, **kwargs: P.kwargs) -> T:
        c = call(*args, **kwargs)  # what evosctl has to say, such as that the sidecar is away, goes to our standard error
        done = subprocess.run(c.words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
        return c.read(_answer(c.words, done.returncode, done.stdout))

    return _public(now, call)


def _public(f: F, call: Any) -> F:
    public: Any = functools.update_wrapper(f, call)
    public.__name__ = public.__qualname__ = call.__name__[1:]
    public.__signature__ = inspect.signature(call).replace(return_annotation=inspect.Signature.empty)
    return f


def _current() -> _Call[Step]:
    """The step that the job is in."""
    return _Call(_present, "env", "--json")


def _next(step: Optional[Step] = None, release: Sequence[str] = (), timeout: Optional[float] = None) -> _Call[Optional[Step]]:
    """Ends the step, the present one if none is given, and waits for the nodes of the next: the Step,
    None after the last. release are nodes that the application would rather give up at a shrink,
    timeout is in seconds. To end a step that has ended already only waits."""
    job, number = (step.job, step.number) if step else (0, 0)
    return _Call(_following, "next", "--json", job=job, from_=number, release=",".join(release), timeout=_seconds(timeout))


def _peek() -> _Call[Optional[Coming]]:
    """The next step as it is planned at the moment, a Coming; None in the last."""
    return _Call(_coming, "peek", "--json")


def _grow(nodes: int, lasts: str = "", least: int = 0, wait: str = "") -> _Call[Step]:
    """Ends the step and begins one with so many more nodes (least at least), for lasts, e.g. "20m",
    else for the rest of the present step; now, or within wait: the Step. Refused if it cannot be had."""
    return _Call(_present, "grow", "--json", "--", str(nodes), for_=lasts, min=least, wait=wait)


def _shrink(nodes: int = 0, names: Sequence[str] = (), lasts: str = "") -> _Call[Step]:
    """Ends the step and begins one with so many nodes fewer, or without those named: the Step."""
    return _Call(_present, "shrink", "--json", *([str(nodes)] if nodes else []), nodes=",".join(names), for_=lasts)


def _wait_event(after: int = 0, timeout: Optional[float] = None) -> _Call[Offer]:
    """Waits for an Offer to the malleable job, or a demand, with another id than after. It returns an
    unanswered one again."""
    return _Call(_offer, "wait-event", after=after, timeout=_seconds(timeout))


def _accept(offer: Offer, nodes: int = 0, until: Optional[datetime.datetime] = None) -> _Call[Step]:
    """Takes so many nodes, all if none are given, or gives them back: leave them before. Waits until they
    have come or gone: the Step, which goes on with them. To accept an offer again only waits. With until, the
    job promises to give taken nodes back by then."""
    promise = None if until is None else int(until.timestamp())
    return _Call(_present, "accept", "--json", "--", str(nodes or offer.nodes), job=offer.job, offer=offer.id, until=promise)


def _decline(offer: Offer) -> _Call[None]:
    """Leaves all as it is; nodes of a mandatory shrink are taken at the deadline nevertheless."""
    return _Call(lambda _: None, "decline", job=offer.job, offer=offer.id)


def _progress(fraction: float) -> _Call[None]:
    """Tells which part of its work the application has done, from 0 to 1."""
    return _Call(lambda _: None, "progress", "--", f"{fraction:.9f}")


current, next, peek, progress = _sync(_current), _sync(_next), _sync(_peek), _sync(_progress)
grow, shrink = _sync(_grow), _sync(_shrink)
wait_event, accept, decline = _sync(_wait_event), _sync(_accept), _sync(_decline)
from . import aio  # noqa: E402 (it is made of the calls above)
from .adaptive import Adaptive, Change  # noqa: E402


def steps() -> Iterator[Step]:
    """The step that the job is in, and all that come; going on ends the one before."""
    step: Optional[Step] = current()
    while step is not None:
        yield step
        step = next(step)


def offers() -> Iterator[Offer]:
    """Yields offers to the job and demands, each once, without end."""
    after = 0
    while True:
        offer = wait_event(after)
        yield offer
        after = offer.id


def events(follow: bool = False) -> Iterator[Event]:
    """Yields past events of the job, and with follow also new ones, without end."""
    with subprocess.Popen(_events(current(), follow), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                yield _event(json.loads(line))
        finally:
            if process.poll() is None and follow:
                process.terminate()
        if process.wait() != 0:
            raise Error("evosctl events failed", process.returncode)


def _seconds(timeout: Optional[float]) -> str:
    return "" if timeout is None else f"{max(timeout, 0.001):.3f}s"


def _events(step: Step, follow: bool) -> list[str]:
    return _Call(_event, "events", "--json", str(step.job), follow="true" if follow else "").words


def _answer(words: list[str], status: int, out: bytes) -> Any:
    try:
        answer = json.loads(out) if out.strip() else {"error": ""}
    except ValueError:
        raise Error(f"{' '.join(words)}: it printed no JSON", status or 1) from None
    if status == 0:
        return answer
    text = (answer or {}).get("error") or f"{' '.join(words)}: exit status {status}"
    raise (Refused if status == 2 else Timeout if status == 124 else Error)(text, status)


def _checked(a: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name not in a:
        raise Error("this evosctl is older than the library: install them together")
    return a


def _present(a: Mapping[str, Any]) -> Step:
    environ = _checked(a, "environ")["environ"]
    parts = tuple(Part(p["job"], tuple(p["node_list"]), tuple(p["cpus"])) for p in a["parts"])
    step = Step(a["job"], a["step"], a["steps"], a["drive"], parts, a.get("note", ""), _coming(a.get("coming")), environ,
                tuple(a.get("lost") or ()), a.get("restarts", 0))
    step.apply()
    return step


def _following(a: Mapping[str, Any]) -> Optional[Step]:
    step = _present(a)
    return None if a.get("done") else step


def _coming(c: Optional[Mapping[str, Any]]) -> Optional[Coming]:
    if not c or "step" not in c:  # of a malleable job in its last step: what is demanded, alone
        return None
    at = _time(c["at"]) if c.get("at") else None
    return Coming(c["step"], c["nodes"], at, tuple(c.get("arriving") or ()), tuple(c.get("leaving") or ()))


def _offer(o: Mapping[str, Any]) -> Offer:
    names, further = tuple(_checked(o, "names")["names"]), tuple(o.get("further") or ())
    until = _time(o["until"]) if o.get("until") else None
    return Offer(o["job"], o["offer"], o["kind"], o["mandatory"], o["nodes"], names, further, o["has"], _time(o["deadline"]), o.get("why", ""), until)


def _event(e: Mapping[str, Any]) -> Event:
    return Event(e["id"], _time(e["at"]), e.get("job", 0), e["kind"], e.get("detail"), e["text"])


def _time(text: str) -> datetime.datetime:
    """Reads RFC 3339 with any number of digits, as Python before 3.11 does not."""
    text = re.sub(r"\.(\d+)", lambda digits: f".{digits[1][:6]:0<6}", text.replace("Z", "+00:00"))
    return datetime.datetime.fromisoformat(text)
