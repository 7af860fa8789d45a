"""An evolving MPI program from the inside, with mpi4py: the calls of evoslurm_mpi(3).

    comm, i = evoslurm.mpi.begin()
    while i < steps:
        iterate(comm, i)
        change = evoslurm.mpi.point(comm, i)
        if change:
            collect(comm)
            comm = evoslurm.mpi.release(comm, change)
            if comm is None:
                break                      # this rank's node goes
            comm = evoslurm.mpi.spawn(comm)
            receive(comm)
        i += 1
    if comm is not None:
        evoslurm.mpi.end(comm)

All calls are collective. Each raises Refused, Timeout or Error where C's returns such a status, on all ranks alike; `comm` of
the exception is the communicator to go on with. EVOS_MPI_LIBRARY is the shared library,
which must be made for the MPI of mpi4py (libevoslurm-mpi.so.0)."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

from mpi4py import MPI

from . import Error, Refused, Timeout

__all__ = ["Change", "begin", "point", "release", "spawn", "end"]

_DONE, _REFUSED, _TIMEOUT = 1, -2, -3


class Change(ctypes.Structure):
    """A change that is due: the number of the coming step, nodes of the job after it, how many nodes go (leaving), and
    whether this rank's node is one of them (leaves)."""
    _fields_ = [(name, ctypes.c_int) for name in ("due", "number", "nodes", "leaving", "leaves")]


class _Options(ctypes.Structure):
    _fields_ = [("ranks", ctypes.c_int)] + [(name, ctypes.c_double) for name in ("every", "ahead", "timeout", "wait")]


_library = ctypes.CDLL(os.environ.get("EVOS_MPI_LIBRARY", "libevoslurm-mpi.so.0"))
_library.evos_mpi_error.restype = ctypes.c_char_p
_Handle: Any = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
_library.evos_mpi_point.argtypes = [_Handle, ctypes.c_longlong, ctypes.c_void_p]


def _checked(status: int, comm: Optional[MPI.Intracomm] = None) -> None:
    if status >= 0:
        return
    error = {_REFUSED: Refused, _TIMEOUT: Timeout}.get(status, Error)(_library.evos_mpi_error().decode(errors="replace"))
    setattr(error, "comm", comm)
    raise error


def _with(comm: MPI.Intracomm) -> tuple[MPI.Intracomm, ctypes.c_void_p]:
    """A communicator that C may replace, and where its handle is."""
    new = MPI.Intracomm()
    handle = _Handle.from_address(MPI._addressof(new))
    handle.value = _Handle.from_address(MPI._addressof(comm)).value
    return new, ctypes.c_void_p(MPI._addressof(new))


def begin(ranks: int = 1, every: float = 0, ahead: float = 0, timeout: float = 0, wait: float = 0) -> tuple[MPI.Intracomm, int]:
    """Begins, with so many ranks on each node that comes: the communicator of all ranks, and the iteration to go on with."""
    new, address = _with(MPI.COMM_WORLD)
    iteration = ctypes.c_longlong()
    options = _Options(ranks, every, ahead, timeout, wait)
    _checked(_library.evos_mpi_begin(ctypes.byref(options), address, ctypes.byref(iteration)), new)
    return new, iteration.value


def point(comm: MPI.Intracomm, iteration: int) -> Optional[Change]:
    """The adaptation point, which every rank calls once in each iteration: the Change that is due, or None."""
    change = Change()
    _checked(_library.evos_mpi_point(_Handle.from_address(MPI._addressof(comm)).value, iteration, ctypes.byref(change)), comm)
    return change if change.due else None


def release(comm: MPI.Intracomm, change: Change) -> Optional[MPI.Intracomm]:
    """Ends the step: the communicator without the ranks whose nodes go, and None on those ranks, which must end."""
    new, address = _with(comm)
    _checked(_library.evos_mpi_release(address, ctypes.byref(change)), new)
    return None if new == MPI.COMM_NULL else new


def spawn(comm: MPI.Intracomm) -> MPI.Intracomm:
    """Starts ranks on the nodes that have none: the communicator with them."""
    new, address = _with(comm)
    _checked(_library.evos_mpi_spawn(address), new)
    return new


def end(comm: MPI.Intracomm) -> None:
    """Ends: spawned ranks leave, and the others wait until these have ended. Call it before MPI is finalized."""
    _, address = _with(comm)
    _checked(_library.evos_mpi_end(address), comm)
