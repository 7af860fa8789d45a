package slurmctl

// MostNodes is the largest peak, from n.Peak up to most, with which a job is not kept out of its
// partition for good, and for one below most what is against more. Where the job grows it
// needs a second one beside it, if only for a moment. O(log most) × Never.
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

// GivenMinutes is the time limit of a job that asks for none, noLimit (-1) where it has none:
// the partition's default, or else its longest, below what QOS and associations allow.
func (l *Limits) GivenMinutes(s Subject) int64 {
	most := l.MostMinutes(s)
	if p := l.partitions[s.Partition]; p != nil && p.defaultMinutes != noLimit && (most == noLimit || p.defaultMinutes < most) {
		return p.defaultMinutes
	}
	return most
}
