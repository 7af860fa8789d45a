package simulate

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// submit NAME PROFILE[/PROFILE…]|COMPONENT:PROFILE[/COMPONENT:PROFILE…] [by=PREFERENCE] [limit=] [user=] [drive=] [expand=] [begin=] [lasts=STEP:FOR,…] [deaf] [abrupt=STEP]
// [partition=] [qos=] [mem=MIB] [gres=] [stored] [acts=AFTER:WHAT,…] [claim=NODES]
// [array=TASKS[%MOST]] [fails=TASK] [in=RESERVATION] [constraint=] [cores=IN A SOCKET] [prefer=] [aim=start|waste|near] [freq=FREQUENCY,…] [size=] [grace=] [says=ANSWER,…] [best=requeue|cancel] [hands=HOW[:TIMES]]
func (h *history) submit(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("submit NAME PROFILE")
	}
	all, err := request.ParseAlternatives(strings.ReplaceAll(words[1], "/", "|"))
	o := options(words[2:])
	a := &App{User: userNamed(o["user"]), Name: words[0], Alternatives: all, Drive: drivemode.Mode(o["drive"]), Partition: o["partition"], Prefer: o["prefer"]}
	switch {
	case strings.Contains(words[1], ":"):
		a.Alternatives = nil
		a.Profile, a.Components, err = parseComponents(words[1])
	case !strings.Contains(words[1], "/"):
		a.Alternatives = nil
		err = a.bounded(words[1], o)
	}
	if err != nil {
		return err
	}
	if err := asks(&a.Asks, o); err != nil {
		return err
	}
	_, a.Stored = o["stored"]
	_, a.Deaf = o["deaf"]
	var begins time.Duration
	var lasts map[int]time.Duration
	if err := cmp.Or(given(o, "by", &a.By, planner.ParsePreference), given(o, "aim", &a.Aim, planner.ParseAim), given(o, "freq", &a.Frequencies, request.ParseFrequencies), given(o, "expand", &a.ExpandLimit, planner.ParseExpandLimit),
		given(o, "limit", &a.Limit, time.ParseDuration), given(o, "begin", &begins, time.ParseDuration), given(o, "lasts", &lasts, parseLasts),
		given(o, "claim", &a.Claim, strconv.Atoi), given(o, "acts", &a.Acts, parseActs), given(o, "hands", &a.Hands, parseHands), given(o, "abrupt", &a.Abrupt, strconv.Atoi)); err != nil {
		return err
	}
	if o["begin"] != "" {
		a.Begin = h.s.Cluster.Now().Add(begins)
	}
	a.Lasts = func(step int) time.Duration {
		if d, ok := lasts[step]; ok {
			return d
		}
		return a.says(step)
	}
	if err := a.tasks(o); err != nil {
		return err
	}
	id, err := h.s.Submit(a)
	if err != nil {
		return err
	}
	for i := range a.Profile {
		if h.evolving[id+slurmctl.JobID(i)] = true; !a.Drive.Means().StepsAreJobs {
			break
		}
	}
	h.jobs[a.Name] = id
	if len(a.Tasks) == 0 {
		h.enlist(a)
	}
	for _, t := range a.Tasks {
		t.Array = id
		h.enlist(t)
	}
	return nil
}

func (h *history) enlist(a *App) {
	h.apps[a.Name] = a
	h.order = append(h.order, a.Name)
}

// mostTasks is how many tasks an array has at most.
const mostTasks = 100

// tasks makes an array of an application. One of its tasks may fail at the end of its first step.
func (a *App) tasks(o map[string]string) (err error) {
	if o["array"] == "" {
		return nil
	}
	tasks, most, limited := strings.Cut(o["array"], "%")
	q := &a.Asks
	if q.Array, err = strconv.Atoi(tasks); err == nil && limited {
		q.ArrayLimit, err = strconv.Atoi(most)
	}
	if err != nil || q.Array < 1 || q.Array > mostTasks {
		return fmt.Errorf("array=%s: want TASKS[%%MOST], at most %d", o["array"], mostTasks)
	}
	for n := range q.Array {
		t := *a
		t.Task = uint32(n + 1)
		if t.Name = fmt.Sprintf("%s_%d", a.Name, t.Task); o["fails"] == fmt.Sprint(t.Task) {
			t.Fails = 1
		}
		a.Tasks = append(a.Tasks, &t)
	}
	return nil
}

// stock NAME NODES LIMIT LASTS [user=] [on=NODES] [partition=] [qos=] [mem=MIB] [gres=] [cpus=]
// [constraint=] [cores=IN A SOCKET] [in=RESERVATION] [comment=] [hexcomment=] [hexscript=] [held] [parked]
func (h *history) stock(words []string) error {
	if len(words) < 4 {
		return fmt.Errorf("stock NAME NODES LIMIT LASTS")
	}
	nodes, err1 := strconv.Atoi(words[1])
	limit, err2 := time.ParseDuration(words[2])
	lasts, err3 := time.ParseDuration(words[3])
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return err
		}
	}
	o, begin := options(words[4:]), time.Time{}
	_, held := o["held"]
	if _, parked := o["parked"]; parked {
		begin = h.s.Cluster.Now().Add(parkedFor)
	}
	comment, err1 := hex.DecodeString(o["hexcomment"])
	script, err2 := hex.DecodeString(o["hexscript"])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	q := slurmsim.Job{User: userNamed(o["user"]), Name: words[0], Script: "#!/bin/bash\n" + string(script) + "\n", Nodes: nodes, TimeLimit: limit, Lasts: lasts,
		Partition: o["partition"], Reservation: o["in"], Comment: o["comment"] + string(comment), Held: held, Begin: begin}
	if err := asks(&q, o); err != nil {
		return err
	}
	if on := o["on"]; on != "" {
		list, err := slurmctl.ExpandNodes(on)
		if err != nil {
			return err
		}
		q.NodeList = list
	}
	if h.began != nil {
		q.Program = slurmsim.Func(func(p *slurmsim.Process) {
			h.began[q.Name] = h.s.Cluster.Elapsed()
			p.Sleep(lasts)
		})
	}
	id, err := h.s.Cluster.Submit(q)
	if err != nil {
		h.say(fmt.Sprintf("stock: %v", err))
		return nil
	}
	h.jobs[words[0]], h.evolving[id] = id, q.Comment != "" || len(script) > 0
	h.noteBudget(id, &q, words[4:])
	return nil
}

// noteBudget notes whether the budget of a stock job is checked: those that may have any nodes, or some CPUs of any nodes.
func (h *history) noteBudget(id slurmctl.JobID, q *slurmsim.Job, options []string) {
	anyNodes := !slices.ContainsFunc(options, func(w string) bool {
		return !strings.HasPrefix(w, "user=") && !strings.HasPrefix(w, "cpus=") && !strings.HasPrefix(w, "mem=")
	})
	h.stocks[id], h.sharing[id] = anyNodes && q.CPUs == 0 && q.MemoryPerNode == nil, anyNodes && q.CPUs > 0
}

// forge NAME JOB: bob names a job as the sidecar names JOB's expanders.
func (h *history) forge(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("forge NAME JOB")
	}
	id, err := h.s.Cluster.Submit(slurmsim.Job{User: Bob, Name: fmt.Sprintf("evo_%d_2_7", h.jobs[words[1]]), Comment: "evox:v1",
		Script: "#!/bin/bash\n", Nodes: 1, TimeLimit: time.Hour, Lasts: time.Hour})
	h.jobs[words[0]], h.forged[id] = id, true
	return err
}
