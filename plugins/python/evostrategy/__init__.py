"""Write a strategy for Evoslurm in Python: see serve() and the README."""

from .problem import INFINITE, NEVER, Job, Parameter, Placement, Request, Strategy, Unfit
from .profile import Timeline
from .fit import algorithm1
from .server import serve

__all__ = ["INFINITE", "NEVER", "Job", "Parameter", "Placement", "Request", "Strategy", "Timeline", "Unfit", "algorithm1", "serve"]
