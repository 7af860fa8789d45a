"""Algorithm 1 (Klein and Pérez 2011): place the jobs one by one, each over those before it."""

from .problem import Placement, Unfit
from .profile import Timeline


def algorithm1(request, fit):
    """Makes a plan of the fit of one job.

    fit(timeline, nodes, job) answers the job's Placement over what is in use,
    or None if it is infeasible; it leaves the timeline as it is.
    """
    timeline = Timeline(request.busy)
    answers = []
    for job in request.jobs:
        placed = fit(timeline, request.nodes, job)
        if placed is None:
            answers.append(Unfit())
            continue
        assert isinstance(placed, Placement)
        timeline.add_job(job, placed)
        answers.append(placed)
    return answers
