package planner

// Pad makes released nodes count as busy for margin seconds longer, for systems that take time to
// hand nodes back. Every shrink and the end move later by margin; growths stay where they are. A
// shrink moves less if the next growth would leave its step less than 1 s. The number of steps
// stays.
func Pad(p Profile, margin int64) Profile {
	padded := make(Profile, len(p))
	for i, shift := range shifts(p, margin) {
		padded[i].Nodes = p[i].Nodes
		padded[i].Duration += p[i].Duration + shift // where the step ends …
		if i+1 < len(p) {
			padded[i+1].Duration -= shift // … the next begins
		}
	}
	return padded
}

// Unpad returns the placement of the requested profile p that belongs to a placement of Pad(p,
// margin): growths and the start stay where they are, shrinks and the end move back. Every step is
// at least as long as requested. A step that padding lengthened may be expanded by limit × margin
// more than its own limit would allow.
func Unpad(placed Placement, p Profile, margin int64) Placement {
	steps := make(Profile, len(p))
	for i, shift := range shifts(p, margin) {
		steps[i].Nodes = p[i].Nodes
		steps[i].Duration += placed.Steps[i].Duration - shift
		if i+1 < len(p) {
			steps[i+1].Duration += shift
		}
	}
	return Placement{Start: placed.Start, Steps: steps, Choice: placed.Choice}
}

// shifts returns how much later the end of every step is.
func shifts(p Profile, margin int64) []int64 {
	shifts := make([]int64, len(p))
	margin = max(margin, 0)
	for i := len(p) - 1; i >= 0; i-- {
		switch {
		case i == len(p)-1:
			shifts[i] = margin
		case p[i+1].Nodes < p[i].Nodes:
			shifts[i] = min(margin, p[i+1].Duration-1+shifts[i+1])
		}
	}
	return shifts
}
