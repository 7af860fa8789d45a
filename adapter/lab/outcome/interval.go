package outcome

import "math"

// Interval returns the mean of what there is, and half of its confidence interval of 95 %; NaN: there is none.
func Interval(x []float64) (mean, half float64) {
	var all []float64
	for _, v := range x {
		if !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	if len(all) == 1 {
		return all[0], math.NaN()
	}
	n := float64(len(all))
	for _, v := range all {
		mean += v
	}
	mean /= n
	squares := 0.
	for _, v := range all {
		squares += (v - mean) * (v - mean)
	}
	return mean, studentsT(len(all)-1) * math.Sqrt(squares/(n-1)/n)
}

// studentsT returns how far from 0 a value of Student's distribution is in 95 % of all cases.
func studentsT(freedom int) float64 {
	within := func(t float64) float64 { // the closed form for whole degrees of freedom
		angle := math.Atan(t / math.Sqrt(float64(freedom)))
		sine, cosine := math.Sincos(angle)
		term, sum := 1., 0.
		if freedom%2 == 1 {
			term = cosine
		}
		for k := 1 + freedom%2; k <= freedom-1; k += 2 {
			sum += term
			term *= cosine * cosine * float64(k) / float64(k+1)
		}
		if freedom%2 == 1 {
			return 2 / math.Pi * (angle + sine*sum)
		}
		return sine * sum
	}
	low, high := 1., 13. // 12.7 with one degree of freedom
	for high-low > 1e-12 {
		if middle := (low + high) / 2; within(middle) < .95 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
