package sites

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// share holds what a Slurm job has on one node.
type share struct {
	Memory string // MB
	GRES   string
}

// seen is a Slurm job as root sees it.
type seen struct {
	ID                                                    int
	Name, User, State, Reason, Account, QOS, Partition    string
	TRES, Comment, StartTime, TimeLimit, BatchFlag, Reser string
	Nodes                                                 map[string]share

	nodeList, line string
}

func (s seen) nodes() []string {
	var names []string
	for name := range s.Nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var field = regexp.MustCompile(`(?:^| )([A-Za-z]+)=(\S*)`)

// parseJob reads a line of scontrol -d -o show job.
func parseJob(line string) seen {
	var j seen
	for _, f := range field.FindAllStringSubmatch(line, -1) {
		set := map[string]*string{"JobName": &j.Name, "UserId": &j.User, "JobState": &j.State, "Reason": &j.Reason, "Account": &j.Account, "QOS": &j.QOS,
			"Partition": &j.Partition, "TRES": &j.TRES, "NodeList": &j.nodeList, "Comment": &j.Comment, "StartTime": &j.StartTime, "TimeLimit": &j.TimeLimit, "Reservation": &j.Reser}[f[1]]
		switch {
		case f[1] == "JobId":
			j.ID, _ = strconv.Atoi(f[2])
		case set != nil && *set == "":
			*set = f[2]
		}
	}
	j.User, _, _ = strings.Cut(j.User, "(")
	j.line = line
	return j
}

// parseNode reads a line of scontrol -d -o show node. (Of a job, scontrol -d leaves out
// the last node after a merge; whole nodes tell the same.)
func parseNode(line string) (name string, has share) {
	for _, f := range field.FindAllStringSubmatch(line, -1) {
		switch f[1] {
		case "NodeName":
			name = f[2]
		case "AllocMem":
			has.Memory = f[2]
		case "GresUsed":
			var gres []string
			for _, g := range strings.Split(strings.ReplaceAll(f[2], ":(null)", ""), ",") {
				if g, _, _ = strings.Cut(g, "("); !strings.HasSuffix(g, ":0") {
					gres = append(gres, g)
				}
			}
			has.GRES = strings.Join(gres, ",")
		}
	}
	return name, has
}

// look returns all jobs that slurmctld knows, ended ones too.
func look(c *slurmtest.Cluster) []seen {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text, err := c.Run(ctx, slurmtest.Root, "scontrol", "-d", "-o", "--all", "show", "job")
	if err != nil {
		return nil
	}
	nodes, err := c.Run(ctx, slurmtest.Root, "scontrol", "-d", "-o", "--all", "show", "node")
	if err != nil {
		return nil
	}
	has := map[string]share{}
	for line := range strings.Lines(nodes) {
		name, s := parseNode(strings.TrimSpace(line))
		has[name] = s
	}
	var jobs []seen
	for line := range strings.Lines(text) {
		j := parseJob(strings.TrimSpace(line))
		if j.ID == 0 {
			continue
		}
		if j.State == "RUNNING" || j.State == "SUSPENDED" { // else the nodes are those that it had
			j.Nodes = map[string]share{}
			names, _ := slurmctl.ExpandNodes(j.nodeList)
			for _, n := range names {
				j.Nodes[n] = has[n]
			}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// shot is all jobs at a time.
type shot struct {
	From, To time.Time // it was taken between
	Jobs     []seen
}

// watch takes shots from outside, as root.
type watch struct {
	mu    sync.Mutex
	shots []shot
}

func startWatch(t *testing.T, c *slurmtest.Cluster) *watch {
	w := &watch{}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			s := shot{From: time.Now()}
			if s.Jobs = look(c); s.Jobs != nil {
				s.To = time.Now()
				w.mu.Lock()
				w.shots = append(w.shots, s)
				w.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return w
}

func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shots = nil
}

// between returns the shots that were taken wholly in that time.
func (w *watch) between(from, to time.Time) []shot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var in []shot
	for _, s := range w.shots {
		if s.From.After(from) && s.To.Before(to) {
			in = append(in, s)
		}
	}
	return in
}
