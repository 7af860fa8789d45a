"""What evoslurm has, as coroutines. One that is cancelled leaves the step ended; next goes on waiting."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, AsyncIterator, Awaitable, Callable, Optional

import evoslurm as now

if TYPE_CHECKING:
    from evoslurm import Event, Offer, P, Step, T

__all__ = ["current", "next", "peek", "steps", "grow", "shrink", "wait_event", "offers", "accept", "decline", "events", "progress"]


def _async(call: Callable[P, now._Call[T]]) -> Callable[P, Awaitable[T]]:
    async def later(*args: P.args, **kwargs: P.kwargs) -> T:
        c = call(*args, **kwargs)
        process = await asyncio.create_subprocess_exec(*c.words, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL)
        try:
            out, _ = await process.communicate()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.terminate()
            await process.wait()
            raise
        return c.read(now._answer(c.words, process.returncode or 0, out))

    return now._public(later, call)


current, next, peek, progress = _async(now._current), _async(now._next), _async(now._peek), _async(now._progress)
grow, shrink = _async(now._grow), _async(now._shrink)
wait_event, accept, decline = _async(now._wait_event), _async(now._accept), _async(now._decline)


async def steps() -> AsyncIterator[Step]:
    step: Optional[Step] = await current()
    while step is not None:
        yield step
        step = await next(step)


async def offers() -> AsyncIterator[Offer]:
    after = 0
    while True:
        offer = await wait_event(after)
        yield offer
        after = offer.id


async def events(follow: bool = False) -> AsyncIterator[Event]:
    words = now._events(await current(), follow)
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, limit=1 << 24)
    assert process.stdout
    try:
        async for line in process.stdout:
            yield now._event(json.loads(line))
    finally:
        if process.returncode is None and follow:
            process.terminate()
        await process.wait()
    if process.returncode != 0:
        raise now.Error("evosctl events failed", process.returncode or 1)
