"""The resource profile: how many nodes are in use at every second."""

from bisect import bisect_left, bisect_right

from .problem import NEVER


class Timeline:
    """How many nodes are in use, second by second, as a list of steps."""

    def __init__(self, busy=()):
        self._times = [-NEVER - 1]  # from when on …
        self._nodes = [0]  # … so many are in use
        changes = {}
        for start, duration, nodes in busy:
            if duration > 0 and nodes > 0:
                end = NEVER if duration >= NEVER - max(start, 0) else start + duration
                changes[start] = changes.get(start, 0) + nodes
                if end < NEVER:
                    changes[end] = changes.get(end, 0) - nodes
        for time in sorted(changes):
            if changes[time]:
                self._times.append(time)
                self._nodes.append(self._nodes[-1] + changes[time])

    def _cut(self, time):
        """The index of the step that begins at time, which is made if there is none."""
        i = bisect_left(self._times, time)
        if i == len(self._times) or self._times[i] != time:
            self._times.insert(i, time)
            self._nodes.insert(i, self._nodes[i - 1])
        return i

    def add(self, start, end, nodes):
        """Puts nodes more in use during [start, end)."""
        if start >= end or not nodes:
            return
        first, last = self._cut(start), None
        if end < NEVER:
            last = self._cut(end)
        else:
            last = len(self._nodes)
        values = self._nodes
        for i in range(first, last):
            values[i] += nodes

    def add_job(self, job, placement):
        """Puts a placed job in use."""
        at = placement.start
        for (_, nodes), duration in zip(job.steps, placement.durations):
            self.add(at, at + duration, nodes)
            at += duration

    def earliest_free(self, start, nodes, duration, capacity):
        """The first second from start on at which nodes are free for duration; None if there is none."""
        most = capacity - nodes
        if most < 0:
            return None
        times, values = self._times, self._nodes
        i = bisect_right(times, start) - 1
        at = start
        while True:
            # behind the first step in the way, until there is none
            end = at + duration
            while i < len(times) and times[i] < end and values[i] <= most:
                i += 1
            if i == len(times) or times[i] >= end:
                return at
            while i < len(times) and values[i] > most:
                i += 1
            if i == len(times):
                return None
            at = times[i]
