package naive

// Timeline is the resource EP second by second, over [0, len).
type Timeline []int

func (t Timeline) Add(start, end int64, nodes int) {
	for s := max(start, 0); s < min(end, int64(len(t))); s++ {
		t[s] += nodes
	}
}

func (t Timeline) At(s int64) int {
	if s < 0 || s >= int64(len(t)) {
		return 0
	}
	return t[s]
}

func (t Timeline) Free(start, end int64, nodes, capacity int) bool {
	for s := start; s < end; s++ {
		if t.At(s)+nodes > capacity {
			return false
		}
	}
	return true
}
