"""Algorithm 1 (Klein and Pérez 2011): place the jobs one by one, each over those before it."""

from dataclasses import replace

from .problem import Placement, Unfit
from .profile import Timeline


def algorithm1(request, fit):
    """Makes a plan of the fit of one job.

    fit(timeline, nodes, job) answers the job's Placement over what is in use,
    or None if it is infeasible; it leaves the timeline as it is. A moldable job
    gets the alternative that it prefers, each fitted alone.
    """
    timeline = Timeline(request.busy)
    answers = []
    for job in request.jobs:
        choices = job.choices()
        fitted = [(k, fit(timeline, request.nodes, choice)) for k, choice in enumerate(choices)]
        fitted = [replace(placed, choice=k) for k, placed in fitted if placed is not None]
        if not fitted:
            answers.append(Unfit())
            continue
        best = min(fitted, key=job.cost) if job.alternatives else fitted[0]
        assert isinstance(best, Placement)
        timeline.add_job(choices[best.choice], best)
        answers.append(best)
    return answers
