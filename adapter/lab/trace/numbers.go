package trace

// numbers is the set of job numbers, or names, already seen. Numbers are mostly in order: 64 of
// them share a word.
type numbers struct {
	words map[int64]uint64
	names map[string]bool
}

// named reports whether it goes by a name, not by its number.
func (j *Job) named() bool { return j.Shape != nil && j.Shape.ID != "" }

func (n *numbers) has(j *Job) bool {
	if j.named() {
		return n.names[j.Shape.ID]
	}
	return n.words[j.Number>>6]>>(j.Number&63)&1 == 1
}

func (n *numbers) add(j *Job) {
	if n.words == nil {
		n.words, n.names = make(map[int64]uint64), make(map[string]bool)
	}
	if j.named() {
		n.names[j.Shape.ID] = true
		return
	}
	n.words[j.Number>>6] |= 1 << (j.Number & 63)
}
