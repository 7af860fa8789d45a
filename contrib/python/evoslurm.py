"""An evolving job from the inside, in Python.

    import evoslurm, subprocess

    for step in evoslurm.steps():
        subprocess.run(["evosrun", "./amr", f"--phase={step.number}"], check=True)

steps() begins with the step that the job is in and ends each when the next one is asked
for. Who is killed and started again goes on with the step that the job is in then: none is
lost, none is ended twice. All of it as coroutines: evoslurm.aio.

A call is one of "evosctl ... --json", not a request to the sidecar: what a caller must prove
with MUNGE takes a process anyway (munge), and the configuration, the processes of evosrun
--follow and the job's hooks are evosctl's business, which is then done in one way.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Iterator, Mapping, Optional, Sequence

__all__ = ["Step", "Part", "Coming", "Event", "Error", "Refused", "Timeout", "current", "next", "peek", "steps",
           "events", "grow", "shrink", "aio"]

EVOSCTL = "evosctl"  # the command, or its path


class Error(Exception):
    """evosctl failed; status is its exit status."""

    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.status = status


class Refused(Error):
    """A growth or shrink cannot be had; nothing has changed. The text says why, and when it could."""


class Timeout(Error):
    """The next step's nodes were not there in time; to call next again goes on waiting."""


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
class Event:
    """What has happened to the job, or to the sidecar (job is 0)."""

    id: int
    at: datetime.datetime
    job: int
    kind: str
    detail: Any
    text: str


def current() -> Step:
    """The step that the job is in."""
    return _present(_run(_words("env")))


def next(step: Optional[Step] = None, release: Sequence[str] = (), timeout: Optional[float] = None) -> Optional[Step]:
    """Ends the step, the present one if none is given, and waits for the nodes of the next; None
    after the last. release are nodes that the application would rather give up at a shrink, timeout
    is in seconds. To end a step that has ended already only waits."""
    return _following(_run(_next_words(step or current(), release, timeout)))


def peek() -> Optional[Coming]:
    """The next step as it is planned at the moment; None in the last."""
    return _coming(_run(_words("peek")))


def steps() -> Iterator[Step]:
    """The step that the job is in, and all that come; going on ends the one before."""
    step: Optional[Step] = current()
    while step is not None:
        yield step
        step = next(step)


def grow(nodes: int, lasts: str = "", least: int = 0, wait: str = "") -> Step:
    """Ends the step and begins one with so many more nodes (least at least), for lasts, e.g.
    "20m", else for the rest of the present step; now, or within wait. Refused if it cannot be had."""
    return _present(_run(_grow_words(nodes, lasts, least, wait)))


def shrink(nodes: int = 0, names: Sequence[str] = (), lasts: str = "") -> Step:
    """Ends the step and begins one with so many nodes fewer, or without those named."""
    return _present(_run(_shrink_words(nodes, names, lasts)))


def events(follow: bool = False) -> Iterator[Event]:
    """What has happened to the job, and with follow what goes on happening, for ever."""
    words = _words("events", str(current().job)) + (["--follow"] if follow else [])
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                yield _event(json.loads(line))
        finally:
            if process.poll() is None and follow:
                process.terminate()
        if process.wait() != 0:
            raise Error("evosctl events failed", process.returncode)


class aio:
    """The same as coroutines. One that is cancelled leaves the step ended; next goes on waiting."""

    @staticmethod
    async def current() -> Step:
        return _present(await _arun(_words("env")))

    @staticmethod
    async def next(step: Optional[Step] = None, release: Sequence[str] = (), timeout: Optional[float] = None) -> Optional[Step]:
        return _following(await _arun(_next_words(step or await aio.current(), release, timeout)))

    @staticmethod
    async def peek() -> Optional[Coming]:
        return _coming(await _arun(_words("peek")))

    @staticmethod
    async def steps() -> AsyncIterator[Step]:
        step: Optional[Step] = await aio.current()
        while step is not None:
            yield step
            step = await aio.next(step)

    @staticmethod
    async def grow(nodes: int, lasts: str = "", least: int = 0, wait: str = "") -> Step:
        return _present(await _arun(_grow_words(nodes, lasts, least, wait)))

    @staticmethod
    async def shrink(nodes: int = 0, names: Sequence[str] = (), lasts: str = "") -> Step:
        return _present(await _arun(_shrink_words(nodes, names, lasts)))

    @staticmethod
    async def events(follow: bool = False) -> AsyncIterator[Event]:
        words = _words("events", str((await aio.current()).job)) + (["--follow"] if follow else [])
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, limit=1 << 24)
        assert process.stdout
        try:
            async for line in process.stdout:
                yield _event(json.loads(line))
        finally:
            if process.returncode is None and follow:
                process.terminate()
            await process.wait()
        if process.returncode != 0:
            raise Error("evosctl events failed", process.returncode or 1)


def _words(command: str, *args: str) -> list[str]:
    return [EVOSCTL, command, "--json", *args]


def _next_words(step: Step, release: Sequence[str], timeout: Optional[float]) -> list[str]:
    words = _words("next", f"--job={step.job}", f"--from={step.number}")
    if release:
        words.append("--release=" + ",".join(release))
    if timeout is not None:
        words.append(f"--timeout={max(timeout, 0.001):.3f}s")
    return words


def _grow_words(nodes: int, lasts: str, least: int, wait: str) -> list[str]:
    words = _words("grow", str(nodes))
    for name, value in (("for", lasts), ("min", str(least) if least else ""), ("wait", wait)):
        if value:
            words.append(f"--{name}={value}")
    return words


def _shrink_words(nodes: int, names: Sequence[str], lasts: str) -> list[str]:
    words = _words("shrink", *([str(nodes)] if nodes else []))
    if names:
        words.append("--nodes=" + ",".join(names))
    if lasts:
        words.append(f"--for={lasts}")
    return words


def _run(words: list[str]) -> Any:
    # What evosctl has to say, such as that the sidecar is away, goes to our standard error.
    done = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    return _answer(words, done.returncode, done.stdout)


async def _arun(words: list[str]) -> Any:
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL)
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        raise
    return _answer(words, process.returncode or 0, out)


def _answer(words: list[str], status: int, out: bytes) -> Any:
    try:
        answer = json.loads(out) if out.strip() else {"error": ""}
    except ValueError:
        raise Error(f"{' '.join(words)}: it printed no JSON", status or 1) from None
    if status == 0:
        return answer
    text = (answer or {}).get("error") or f"{' '.join(words)}: exit status {status}"
    raise (Refused if status == 2 else Timeout if status == 124 else Error)(text, status)


def _present(a: Mapping[str, Any]) -> Step:
    if "environ" not in a:
        raise Error("this evosctl is older than the library: install them together")
    parts = tuple(Part(p["job"], tuple(p["node_list"]), tuple(p["cpus"])) for p in a["parts"])
    step = Step(a["job"], a["step"], a["steps"], a["drive"], parts, a.get("note", ""), _coming(a.get("coming")), a["environ"])
    step.apply()
    return step


def _following(a: Mapping[str, Any]) -> Optional[Step]:
    step = _present(a)
    return None if a.get("done") else step


def _coming(c: Optional[Mapping[str, Any]]) -> Optional[Coming]:
    if not c:
        return None
    at = _time(c["at"]) if c.get("at") else None
    return Coming(c["step"], c["nodes"], at, tuple(c.get("arriving") or ()), tuple(c.get("leaving") or ()))


def _event(e: Mapping[str, Any]) -> Event:
    return Event(e["id"], _time(e["at"]), e.get("job", 0), e["kind"], e.get("detail"), e["text"])


def _time(text: str) -> datetime.datetime:
    """Reads RFC 3339 with any number of digits, as Python before 3.11 does not."""
    text = text.replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[:digits][:6]:0<6}{tail[digits:]}"
    return datetime.datetime.fromisoformat(text)
