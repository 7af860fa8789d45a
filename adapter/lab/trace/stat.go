package trace

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// Stat holds statistics of a trace. Shares are percent; nil if the trace does not say.
type Stat struct {
	Jobs     int            `json:"jobs"`
	NeverRan int            `json:"never_ran"` // no run time or no size; not in what follows
	Kinds    map[string]int `json:"kinds"`
	Unit     string         `json:"unit"` // of sizes: node, processor
	Machine  *int           `json:"machine"`
	Users    *int           `json:"users"`

	Span        float64  `json:"span"`        // seconds from the first submission to the last
	Makespan    *float64 `json:"makespan"`    // to the last end; by starts
	Area        float64  `json:"area"`        // node-seconds, or processor-seconds
	Load        *float64 `json:"load"`        // of the machine, were all work to come as it does and be done at once
	Utilisation *float64 `json:"utilisation"` // of the machine up to the last end; by starts

	Interarrival Spread `json:"interarrival"`
	Size         Spread `json:"size"`
	Run          Spread `json:"run"`
	Wait         Spread `json:"wait"`       // of those that tell
	Turnaround   Spread `json:"turnaround"` //
	Slowdown     Spread `json:"bounded_slowdown"`
	Limit        Spread `json:"limit"`    // of those that tell
	Accuracy     Spread `json:"accuracy"` // run time of the limit
	OverLimit    int    `json:"over_limit"`

	KWh *float64 `json:"kwh,omitempty"` // of jobs with energy, in a trace that has it

	Groups []Group `json:"groups,omitempty"`
}

// Spread is how something is distributed.
type Spread struct {
	Of     int     `json:"of"` // how many tell
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// Group is the jobs of one hour of the day, user, …
type Group struct {
	Name string   `json:"name"`
	Jobs int      `json:"jobs"`
	Area float64  `json:"area"`
	Wait *float64 `json:"wait"` // mean, of those that tell; null: none does

	told   int
	waited float64
	key    int64
}

// Groupings lists what jobs can be grouped by.
var Groupings = []string{"hour", "weekday", "day", "user", "size"}

// shortest is the run time up to which slowdown is bounded, in seconds (Feitelson and Rudolph 1998).
const shortest = 10

// Counter makes a [Stat], one job after the other.
type Counter struct {
	header *Header
	by     string
	zone   *time.Location
	stat   Stat

	first, last, end, previous                                    float64
	starts                                                        int
	gaps, sizes, runs, waits, turnarounds, slowdowns, limits, acc []float64
	users                                                         map[int64]bool
	groups                                                        map[int64]*Group
}

// NewCounter counts the jobs of a trace, grouped by one of [Groupings], or not ("").
func NewCounter(h *Header, by string) *Counter {
	c := &Counter{header: h, by: by, zone: time.UTC, first: math.Inf(1), last: math.Inf(-1), end: math.Inf(-1), previous: -1,
		users: make(map[int64]bool), groups: make(map[int64]*Group)}
	c.stat.Kinds = make(map[string]int)
	if h.HasEnergy() {
		c.stat.KWh = new(float64)
	}
	if zone, err := time.LoadLocation(h.Zone); err == nil && h.Zone != "" {
		c.zone = zone
	}
	return c
}

// Add counts a job.
func (c *Counter) Add(j Job) {
	c.stat.Jobs++
	if !j.Ran() {
		c.stat.NeverRan++
		return
	}
	c.stat.Kinds[j.Kind().String()]++
	size := float64(j.Size())
	area := size * j.Run
	if s := j.Shape; s != nil && s.Kind == Evolving {
		area = float64(s.Profile.Area())
	}
	c.first, c.last = min(c.first, j.Submit), max(c.last, j.Submit)
	if c.previous >= 0 {
		c.gaps = append(c.gaps, max(j.Submit-c.previous, 0))
	}
	c.previous = j.Submit
	c.stat.Area += area
	c.sizes, c.runs = append(c.sizes, size), append(c.runs, j.Run)
	if j.Wait >= 0 {
		c.starts++
		c.end = max(c.end, j.Submit+j.Wait+j.Run)
		c.waits = append(c.waits, j.Wait)
		c.turnarounds = append(c.turnarounds, j.Wait+j.Run)
		c.slowdowns = append(c.slowdowns, max(1, (j.Wait+j.Run)/max(j.Run, shortest)))
	}
	if j.Limit > 0 {
		c.limits = append(c.limits, j.Limit)
		c.acc = append(c.acc, 100*j.Run/j.Limit)
		if j.Run > j.Limit {
			c.stat.OverLimit++
		}
	}
	if j.User >= 0 {
		c.users[j.User] = true
	}
	if joules := j.joules(); c.stat.KWh != nil && joules >= 0 {
		*c.stat.KWh += joules / 3.6e6
	}
	c.group(&j, area)
}

func (c *Counter) group(j *Job, area float64) {
	var key int64
	var name string
	at := time.Unix(int64(j.Submit)+max(c.header.UnixStart, 0), 0).In(c.zone)
	switch c.by {
	case "hour":
		key = int64(at.Hour())
		name = strconv.Itoa(at.Hour())
	case "weekday":
		key = int64(at.Weekday()+6) % 7
		name = at.Weekday().String()
	case "day":
		name = at.Format(time.DateOnly)
		key = int64(at.Year())*1000 + int64(at.YearDay())
	case "user":
		key, name = j.User, strconv.FormatInt(j.User, 10)
	case "size": // 1, 2, 3-4, 5-8, …
		top := bits.Len(uint(j.Size() - 1))
		key, name = int64(top), strconv.Itoa(1<<top)
		if top > 1 {
			name = strconv.Itoa(1<<(top-1)+1) + "-" + name
		}
	default:
		return
	}
	g := c.groups[key]
	if g == nil {
		g = &Group{Name: name, key: key}
		c.groups[key] = g
	}
	g.Jobs++
	g.Area += area
	if j.Wait >= 0 {
		g.told++
		g.waited += j.Wait
	}
}

// Stat returns what was counted.
func (c *Counter) Stat() Stat {
	s := c.stat
	s.Unit = c.header.unit()
	machine, ran := float64(c.header.Machine()), s.Jobs-s.NeverRan
	if machine > 0 {
		s.Machine = new(c.header.Machine())
	}
	if len(c.users) > 0 || ran == 0 {
		s.Users = new(len(c.users))
	}
	if ran > 0 {
		s.Span = c.last - c.first
		if machine > 0 && s.Span > 0 {
			s.Load = new(100 * s.Area / s.Span / machine)
		}
		if c.starts == ran {
			s.Makespan = new(c.end - c.first)
			if machine > 0 {
				s.Utilisation = new(100 * s.Area / *s.Makespan / machine)
			}
		}
	}
	s.Interarrival, s.Size, s.Run, s.Wait = SpreadOf(c.gaps), SpreadOf(c.sizes), SpreadOf(c.runs), SpreadOf(c.waits)
	s.Turnaround, s.Slowdown, s.Limit, s.Accuracy = SpreadOf(c.turnarounds), SpreadOf(c.slowdowns), SpreadOf(c.limits), SpreadOf(c.acc)
	for _, g := range c.groups {
		if g.told > 0 {
			g.Wait = new(g.waited / float64(g.told))
		}
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		if c.by == "user" && a.Area != b.Area { // who uses most
			return int(math.Copysign(1, b.Area-a.Area))
		}
		return int(min(max(a.key-b.key, -1), 1))
	})
	return s
}

// SpreadOf returns how numbers are distributed; it puts them in order.
func SpreadOf(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	slices.Sort(x)
	sum := 0.
	for _, v := range x {
		sum += v
	}
	at := func(part float64) float64 { return x[max(int(math.Ceil(part*float64(len(x))))-1, 0)] }
	return Spread{len(x), sum / float64(len(x)), at(.5), at(.95), x[len(x)-1]}
}
