package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/place"
)

// clusters are two histories that are played beside each other. A user asks the sidecars of both where a job would run, and
// submits it to the better cluster, as evosbatch -M does. The histories wait for each other only where the user compares.
type clusters struct {
	mu   sync.Mutex
	said sync.Cond
	all  map[string]*[2]any // what each has said, by subject
	gone [2]bool            // it has ended
}

func newClusters() *clusters {
	t := &clusters{all: map[string]*[2]any{}}
	t.said.L = &t.mu
	return t
}

// leave ends the share of one cluster: the other waits for it no more.
func (t *clusters) leave(which int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone[which] = true
	t.said.Broadcast()
}

// compare says something about a subject, and returns what both have said. One that has ended has said nil.
func (t *clusters) compare(which int, subject string, word any) [2]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[subject] == nil {
		t.all[subject] = &[2]any{}
	}
	both := t.all[subject]
	both[which] = word
	t.said.Broadcast()
	for both[1-which] == nil && !t.gone[1-which] {
		t.said.Wait()
	}
	return *both
}

// seat is one of the clusters.
type seat struct {
	*history
	of     *clusters
	which  int
	kept   bool             // each job that came while its place was kept must start as offered
	places map[string]asked // by job
}

// in returns a seat with the history of its cluster.
func (s *seat) in(h *history) *seat {
	if s != nil {
		s.history = h
	}
	return s
}

// asked is a question for a place.
type asked struct {
	at, answered time.Duration
	answer       *api.Placement // nil: none yet
	need         int            // nodes of the first step
	order        []int          // of the clusters, best first
	here         bool           // the job is here
	binding      bool           // it came while its place was kept
}

// waits is how long the user waits for answers.
const waits = time.Second

func (s *seat) words() map[string]doing {
	return map[string]doing{"ask": s.ask, "choose": s.choose, "send": s.send}
}

// ask NAME PROFILE [user=] …: the user asks where the job would run.
func (s *seat) ask(words []string) error {
	if len(words) < 2 {
		return errors.New("ask NAME PROFILE")
	}
	a := &App{}
	if err := a.bounded(words[1], nil); err != nil {
		return err
	}
	name := words[0]
	s.places[name] = asked{at: s.s.Cluster.Elapsed(), need: a.Profile[0].Nodes}
	return s.question(words, func(answer *api.Placement) {
		q := s.places[name]
		q.answer, q.answered = answer, s.s.Cluster.Elapsed()
		s.places[name] = q
	})
}

// choose NAME POLICY: the user compares the answers, and gives back the place that is not taken.
func (s *seat) choose(words []string) error {
	if len(words) != 2 {
		return errors.New("choose NAME POLICY")
	}
	q := s.places[words[0]]
	offers := []place.Offer{}
	for i, word := range s.of.compare(s.which, words[0], q.offer()) {
		if o, _ := word.(place.Offer); o.Nodes > 0 {
			o.Cluster = fmt.Sprint(i)
			offers = append(offers, o)
		}
	}
	if len(offers) > 0 {
		order, _, err := place.Choose(place.Policy(words[1]), offers)
		if err != nil {
			return err
		}
		for _, k := range order {
			q.order = append(q.order, int(offers[k].Cluster[0]-'0'))
		}
	}
	s.places[words[0]] = q
	if len(q.order) == 0 || q.order[0] != s.which {
		return s.place([]string{words[0], "withdraw"})
	}
	return nil
}

// offer returns an answer as the user compares it. One that is late, or not for this job, has no nodes.
func (q asked) offer() place.Offer {
	a := q.answer
	if a == nil || q.answered > q.at+waits || a.Unfit != "" || a.Start.IsZero() {
		return place.Offer{}
	}
	return place.Offer{Start: max(int64(a.Start.Sub(a.Now)/time.Second), 0), End: max(int64(a.End.Sub(a.Now)/time.Second), 0), Need: q.need, Free: a.Free, Nodes: a.Nodes}
}

// send NAME PROFILE …: the user submits the job to the best cluster that can be reached.
func (s *seat) send(words []string) error {
	name := words[0]
	q := s.places[name]
	for rank, which := range q.order {
		here := which == s.which
		if here && s.had == nil { // slurmctld is there
			if err := s.submit(words); err != nil {
				return err
			}
			q.here, q.binding = true, s.s.Cluster.Elapsed() < q.answered+boundFor
			s.places[name] = q
		}
		if s.of.compare(s.which, fmt.Sprintf("%s, attempt %d", name, rank), q.here)[which] == true {
			return nil
		}
	}
	return nil
}

// boundFor is the time that an answer binds at least.
const boundFor = 14 * time.Second

// soon is how far ahead a start may be that must be as offered. Until a later one, other jobs begin, grow, and end some seconds
// later than planned, and a gap that a job would have fitted in may be too short by these.
const soon = time.Minute

// mostLate is how much later than offered a job may start where all jobs last as they said: each start, growth, and end before
// it takes some seconds.
const mostLate = 20 * time.Second

// checkKept checks that each job that came while its place was kept starts as offered, if that was soon. It does where nothing
// fails, all jobs last as they said, and no stock jobs come between the question and the job.
func (s *seat) checkKept() {
	if s == nil || !s.kept {
		return
	}
	for name, q := range s.places {
		a := s.apps[name]
		if !q.here || !q.binding || a == nil || q.answer.Start.Sub(q.answer.Now) > soon {
			continue
		}
		by := q.at + q.answer.Start.Sub(q.answer.Now) + mostLate
		if len(a.Steps) == 0 || a.Steps[0].At > by {
			s.blame(fmt.Errorf("job %s was to start by %s, as offered, and has begun %v", name, stamp(by), a.Steps))
		}
	}
}
