package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Outage is a time in which nodes run no new jobs. Announced means that a reservation keeps jobs off whose
// limits reach into it; running jobs go on in any case.
type Outage struct {
	From, Until int64 // seconds; Until 0 for no end
	Nodes       []string
	Announced   int64 // second at which the reservation was made, before Until; negative for none
}

// plan puts the outage with a number on the agenda.
func (o Outage) plan(c *slurmsim.Cluster, number int) {
	if o.Announced >= 0 {
		c.Later(time.Duration(o.Announced)*time.Second, reserves{o, number})
		return
	}
	c.Later(time.Duration(o.From)*time.Second, drains{o.Nodes, true})
	if o.Until > 0 {
		c.Later(time.Duration(o.Until)*time.Second, drains{o.Nodes, false})
	}
}

// drains drains or resumes nodes.
type drains struct {
	Nodes []string
	Drain bool
}

// Act implements slurmsim.Action.
func (d drains) Act(c *slurmsim.Cluster) {
	for _, name := range d.Nodes {
		c.SetNode(name, false, d.Drain)
	}
}

// reserves makes the reservation of an outage.
type reserves struct {
	O      Outage
	Number int
}

// Act implements slurmsim.Action.
func (r reserves) Act(c *slurmsim.Cluster) {
	start := c.Now().Add(time.Duration(r.O.From)*time.Second - c.Elapsed())
	end := start.Add(time.Duration(r.O.Until-r.O.From) * time.Second)
	if start.Before(c.Now()) {
		start = c.Now()
	}
	q := slurmctl.ReservationRequest{Name: fmt.Sprintf("outage_%d", r.Number), Start: start, End: end, Nodes: r.O.Nodes, Users: []string{"root"}, Flags: []string{"MAINT", "IGNORE_JOBS"}}
	c.Go(func(*slurmsim.Process) {
		_ = c.Client(slurmsim.Root).CreateReservation(context.Background(), q)
	})
}
