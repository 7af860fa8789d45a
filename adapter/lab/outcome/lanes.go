package outcome

import "container/heap"

// freeLanes assigns jobs, in order of their starts, the lowest free lane.
type freeLanes struct {
	busy ends
	free lowest
	n    int
}

// take returns a lane for a period. O(log n).
func (l *freeLanes) take(start, end int64) int {
	for len(l.busy) > 0 && l.busy[0].at <= start {
		heap.Push(&l.free, heap.Pop(&l.busy).(laneEnd).lane)
	}
	lane := l.n
	if len(l.free) > 0 {
		lane = heap.Pop(&l.free).(int)
	} else {
		l.n++
	}
	heap.Push(&l.busy, laneEnd{end, lane})
	return lane
}

type laneEnd struct {
	at   int64
	lane int
}

type ends []laneEnd

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, k int) bool { return e[i].at < e[k].at }
func (e ends) Swap(i, k int)      { e[i], e[k] = e[k], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(laneEnd)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type lowest []int

func (l lowest) Len() int           { return len(l) }
func (l lowest) Less(i, k int) bool { return l[i] < l[k] }
func (l lowest) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }
func (l *lowest) Push(x any)        { *l = append(*l, x.(int)) }
func (l *lowest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
