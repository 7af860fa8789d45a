"""Write a strategy for Evoslurm in Python: see serve() and the README."""

from .problem import (BALANCE, COMPLETION, GROW, INFINITE, NEVER, NODE_SECONDS, POWER_DOWN, POWER_DRAIN, POWER_ON, POWER_UP, POWERED_DOWN,
                      SHRINK, WASTE, Job, MalleableJob, NodeSet, Parameter, Placement, Request, ResizeRequest, Strategy, Unfit)
from .profile import Timeline
from .fit import algorithm1
from .server import serve

__all__ = ["BALANCE", "COMPLETION", "GROW", "INFINITE", "NEVER", "NODE_SECONDS", "POWER_DOWN", "POWER_DRAIN",
           "POWER_ON", "POWER_UP", "POWERED_DOWN", "SHRINK", "WASTE", "Job", "MalleableJob", "NodeSet", "Parameter", "Placement", "Request", "ResizeRequest", "Strategy", "Timeline", "Unfit", "algorithm1", "serve"]
