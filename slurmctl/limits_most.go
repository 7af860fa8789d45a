package slurmctl

// MostNodes returns the largest peak, from n.Peak to most, with which the partition can ever run
// the job. If the peak is below most, it also returns what prevents more. A job that grows needs a
// second job beside it, if only for a moment. O(log most) × Never.
func (l *Limits) MostNodes(s Subject, n Need, most int) (peak int, why string) {
	against := func(peak int) []string {
		one := n
		if one.Peak = peak; peak > n.Peak {
			one.Growths = append([]int{most - n.Peak}, n.Growths...)
		}
		return l.Never(s, one)
	}
	low, high := n.Peak, most
	for low < high {
		if middle := high - (high-low)/2; len(against(middle)) == 0 {
			low = middle
		} else {
			high = middle - 1
		}
	}
	if low < most {
		if all := against(low + 1); len(all) > 0 {
			why = all[0]
		}
	}
	return low, why
}

// GivenMinutes returns the time limit of a job that requests none: the partition's default, or
// otherwise its longest, within the limits of QOS and associations. It returns noLimit (-1) if
// there is none.
func (l *Limits) GivenMinutes(s Subject) int64 {
	most := l.MostMinutes(s)
	if p := l.Parts[s.Partition]; p != nil && p.DefaultMinutes != noLimit && (most == noLimit || p.DefaultMinutes < most) {
		return p.DefaultMinutes
	}
	return most
}
