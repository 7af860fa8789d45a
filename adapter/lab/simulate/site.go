package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

func clusterOptions(o *slurmsim.Options, words []string) error {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		switch key {
		case "nodes":
			o.Nodes = n
		case "cpus":
			o.CPUs = n
		case "accounting":
			o.Accounting, err = true, nil
		case "merge":
			o.PermitJobExpansion, err = true, nil
		case "contain":
			o.Contain, err = true, nil
		case "prolog":
			o.Prolog, err = time.ParseDuration(value)
		case "batchstart":
			o.BatchStartTimeout, err = time.ParseDuration(value)
		case "version": // that Slurm says
			o.Version, err = value, nil
		case "stepmgr": // every job has a step manager
			o.StepMgr, err = true, nil
		case "federation":
			o.Federation, err = value, nil
		case "epilog":
			o.Epilog, err = true, nil
		case "completing": // how long a job is
			o.Latency.Release, err = time.ParseDuration(value)
		case "poll_cpu": // processor time of a poll
			o.PollCPU, err = time.ParseDuration(value)
		case "mem": // MiB of every node, and what a job gets that asks for none
			o.ConsumeMemory, o.MemoryMB, o.DefMemPerCPU = true, int64(n), int64(n)/8
		case "large": // nodes that have twice as much
			err = eachNode(o, value, func(n *slurmctl.Node) { n.Memory *= 2 })
		case "gpus": // nodes that have four
			err = eachNode(o, value, func(n *slurmctl.Node) { n.GRES = "gpu:4" })
		case "cores": // nodes that have two cores in a socket; others have not
			err = eachNode(o, value, func(n *slurmctl.Node) { n.Layout.Cores = 2 })
		case "features": // lists of nodes, each with the feature rack1, rack2, …
			err = nil
			for i, list := range strings.Split(value, "/") {
				err = cmp.Or(err, eachNode(o, list, func(n *slurmctl.Node) { n.Features = append(n.Features, fmt.Sprint("rack", i+1)) }))
			}
		case "switches": // lists of nodes, each on a switch below a common one; // comes before those below another one
			for tree := range strings.SplitSeq(value, "//") {
				if err = addSwitches(&o.Topology, strings.Split(tree, "/")); err != nil {
					break
				}
			}
		case "blocks": // their sizes, and a list of nodes for each base block
			sizes, lists, _ := strings.Cut(value, "/")
			o.Topology, err = blocks(strings.Split(sizes, ","), strings.Split(lists, "/"))
		case "licenses":
			o.Licenses, err = slurmctl.ParseLicenses(value)
		case "enforce":
			o.Enforce, err = true, nil
		case "preempt":
			o.Preempt, o.PreemptMode, err = "partition_prio", value, nil
		default:
			err = fmt.Errorf("cluster: %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addSwitches adds switches with some nodes each, and one above these.
func addSwitches(t *slurmctl.Topology, lists []string) (err error) {
	top := len(t.Switches) + len(lists)
	for _, list := range lists {
		s := slurmctl.Switch{Name: fmt.Sprintf("s%d", len(t.Switches)), Above: top}
		if s.Nodes, err = slurmctl.ExpandNodes(list); err != nil {
			return err
		}
		t.Switches = append(t.Switches, s)
	}
	t.Switches = append(t.Switches, slurmctl.Switch{Name: fmt.Sprintf("top%d", top), Above: -1})
	return nil
}

// blocks returns base blocks, and of how many the larger ones are made.
func blocks(sizes, lists []string) (t slurmctl.Topology, err error) {
	t.Blocks = true
	for _, text := range sizes {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 1:
			return t, fmt.Errorf("blocks: size %q", text)
		case t.BlockSize == 0:
			t.BlockSize = n
		default:
			t.Levels = append(t.Levels, n/t.BlockSize)
		}
	}
	for i, list := range lists {
		s := slurmctl.Switch{Name: fmt.Sprint("b", i), Above: -1}
		if s.Nodes, err = slurmctl.ExpandNodes(list); err != nil {
			return t, err
		}
		t.Switches = append(t.Switches, s)
	}
	return t, nil
}

// chance has latencies spread by a seed.
func chance(o *slurmsim.Options, words []string) (err error) {
	if len(words) != 1 {
		return errors.New("random SEED")
	}
	o.Seed, err = strconv.ParseUint(words[0], 10, 64)
	o.Latency.Spread = 0.5
	return err
}

func configure(c *config.Config, theirs **Policy, words []string) (err error) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "theirs": // a policy as a plugin
			*theirs, err = parsePolicy(value)
		case "grace":
			c.Grace, err = time.ParseDuration(value)
		case "give_up":
			c.GiveUp, err = time.ParseDuration(value)
		case "poll":
			c.PollInterval, err = time.ParseDuration(value)
		case "margin":
			c.Margin, err = time.ParseDuration(value)
		case "hold_ahead":
			c.HoldAhead, err = time.ParseDuration(value)
		case "undriven":
			c.Undriven = config.Undriven(value)
		case "overrun":
			c.Overrun = config.Overrun(value)
		case "overrun_signal":
			c.OverrunSignal = value
		case "heal_leaks":
			c.HealLeaks = true
		case "drive":
			c.Drive = drivemode.Mode(value)
		case "policy":
			c.Malleable.Policy = value
		case "approach":
			c.Malleable.Approach = value
		case "threshold":
			c.Malleable.Threshold, err = strconv.Atoi(value)
		case "best_effort": // with how many nodes of a user at most
			c.BestEffort.Enabled = true
			c.BestEffort.MaxNodes, err = strconv.Atoi(value)
		case "best_effort.qos":
			c.BestEffort.QOS = value
		case "stock_jobs":
			c.StockJobs, err = strconv.Atoi(value)
		case "max_holds":
			c.MaxHolds, err = strconv.Atoi(value)
		case "shares": // SCOPE:RESERVATIONS:NODES:NODE_HOURS
			err = setShares(&c.HoldShares, value)
		case "max_delay":
			c.MaxDelay, err = time.ParseDuration(value)
		case "grow_delay":
			c.GrowDelay, err = time.ParseDuration(value)
		case "prefer_wait":
			c.PreferWait, err = time.ParseDuration(value)
		case "power.mode": // in storms, whose policy for overruns is none that operators may set
			c.Power.Mode = config.PowerMode(value)
		case "power.max_wait":
			c.Power.MaxWait, err = time.ParseDuration(value)
		case "power.reserve":
			c.Power.Reserve, err = strconv.Atoi(value)
		case "watts":
			var w energy.Watts
			w, err = energy.ParseWatts(value)
			c.Power.Watts = config.Watts{Busy: w[energy.Busy], Idle: w[energy.Idle], Off: w[energy.Off], Booting: w[energy.Boot]}
		case "allow_prefer":
			c.AllowPrefer = names(value)
		case "allow.users": // in storms, whose policy for overruns is none that operators may set
			c.Allow.Users = names(value)
		case "deny.users":
			c.Deny.Users = names(value)
		case "max_delays":
			c.MaxDelays = append(c.MaxDelays, strings.Replace(value, "/", "=", 1))
		default: // as operators set it
			*c, err = c.With(key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// setShares sets the shares of a scope.
func setShares(h *config.HoldShares, value string) error {
	scope, figures, _ := strings.Cut(value, ":")
	of := map[string]*config.Shares{"job": &h.Job, "user": &h.User, "account": &h.Account, "partition": &h.Partition}[scope]
	if of == nil {
		return fmt.Errorf("shares: %q", value)
	}
	_, err := fmt.Sscanf(figures, "%d:%d:%d", &of.Reservations, &of.Nodes, &of.NodeHours)
	return err
}

// eachNode changes some nodes of the cluster, whose other options come before.
func eachNode(o *slurmsim.Options, list string, change func(*slurmctl.Node)) error {
	names, err := slurmctl.ExpandNodes(list)
	if err != nil {
		return err
	}
	if o.NodeList == nil {
		for i := range max(o.Nodes, 1) {
			o.NodeList = append(o.NodeList, slurmctl.Node{Name: fmt.Sprintf("n%d", i+1), CPUs: 4, Memory: max(o.MemoryMB, 1000), Weight: 1})
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(o.NodeList, func(n slurmctl.Node) bool { return n.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no node %s", name)
		}
		change(&o.NodeList[i])
	}
	return nil
}

// partition NAME NODES [default] [tier=] [preempt=MODE] [max=LIMIT] [most=NODES] [least=NODES]
func partition(o *slurmsim.Options, words []string) (err error) {
	if len(words) < 2 {
		return errors.New("partition NAME NODES")
	}
	p := slurmsim.Partition{Partition: slurmctl.Partition{Name: words[0], Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute}}
	if p.Nodes, err = slurmctl.ExpandNodes(words[1]); err != nil {
		return err
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "default":
			p.Default = true
		case "tier":
			p.Tier, err = strconv.Atoi(value)
		case "preempt":
			p.PreemptMode = value
		case "max":
			p.MaxTime, err = time.ParseDuration(value)
		case "most":
			p.MaxNodes, err = strconv.Atoi(value)
		case "least":
			p.MinNodes, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("partition: %q", w)
		}
		if err != nil {
			return err
		}
	}
	o.Partitions = append(o.Partitions, p)
	return nil
}

// powerSaving reads power [suspend=] [down=] [boot=] [resume=] [on=NODES] [off=NODES]: after how
// long idle nodes are powered down, and how long they take to go down and come up.
func powerSaving(o *slurmsim.Options, words []string) (err error) {
	p := &o.PowerSaving
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "suspend":
			p.SuspendTime, err = time.ParseDuration(value)
		case "down":
			p.SuspendTimeout, err = time.ParseDuration(value)
		case "boot":
			p.Boot, err = time.ParseDuration(value)
		case "resume":
			p.ResumeTimeout, err = time.ParseDuration(value)
		case "on":
			p.Except, err = slurmctl.ExpandNodes(value)
		case "off":
			p.Off, err = slurmctl.ExpandNodes(value)
		default:
			err = fmt.Errorf("power: %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plugin is the behaviour of the site's job_submit plugin.
type plugin struct {
	overwrites bool // comments, at submission and at every update
	strict     bool // refuses submissions that name nodes or a reservation
	account    bool // refuses updates without Account=
	batch      bool // refuses jobs without a script
	frozen     bool // refuses every update
	words      string
}

// set reads plugin [overwrites] [strict] [account] [batch] [frozen] [explains].
func (p *plugin) set(words []string) error {
	*p = plugin{words: "Unspecified error"}
	for _, w := range words {
		switch w {
		case "overwrites":
			p.overwrites = true
		case "strict":
			p.strict = true
		case "account":
			p.account = true
		case "batch":
			p.batch = true
		case "frozen":
			p.frozen = true
		case "explains": // in words that Slurm itself has for something else
			p.words = "Invalid account or account/partition combination specified"
		default:
			return fmt.Errorf("plugin: %q", w)
		}
	}
	return nil
}

// asks returns the plugin as the model has it.
func (p *plugin) asks() slurmsim.Plugin {
	return slurmsim.Plugin{
		Submit: func(j *slurmsim.Job) error {
			if p.strict && (len(j.NodeList) > 0 || j.Reservation != "") || p.batch && j.Script == "" {
				return slurmsim.Refusal(p.words)
			}
			if p.overwrites {
				j.Comment = "the site's"
			}
			return nil
		},
		Update: func(_ slurmctl.Job, u *slurmsim.Update) error {
			if p.frozen || p.account && u.Account == "" {
				return slurmsim.Refusal(p.words)
			}
			if p.overwrites {
				comment := "the site's"
				u.Comment = &comment
			}
			return nil
		},
	}
}

// bound ACCOUNT[/USER] [jobs=] [nodes=]: limits the jobs per user, and the nodes of all.
func (h *history) bound(words []string) (err error) {
	if len(words) == 0 {
		return errors.New("bound ACCOUNT[/USER]")
	}
	b := slurmsim.Bound{}
	b.Account, b.User, _ = strings.Cut(words[0], "/")
	for key, value := range options(words[1:]) {
		n, err := strconv.Atoi(value)
		switch key {
		case "jobs":
			b.MaxJobs = n
		case "nodes":
			b.GrpNodes = n
		default:
			err = fmt.Errorf("bound: %q", key)
		}
		if err != nil {
			return err
		}
	}
	h.bounds = slices.DeleteFunc(h.bounds, func(o slurmsim.Bound) bool { return o.Account == b.Account && o.User == b.User })
	h.bounds = append(h.bounds, b)
	h.s.Cluster.SetBounds(slices.Clone(h.bounds)...)
	return nil
}

// licenses [LICENCES]: which licences there are from now on.
func (h *history) licenses(words []string) error {
	all, err := slurmctl.ParseLicenses(strings.Join(words, ","))
	h.s.Cluster.SetLicenses(all...)
	return err
}

// reserve NAME NODES for=DURATION [in=DURATION] [flags=] [users=]; if it is there, it gets these nodes, this end, and these users
func (h *history) reserve(root *slurmsim.Client, words []string) (err error) {
	if len(words) < 3 {
		return errors.New("reserve NAME NODES for=DURATION")
	}
	o := options(words[2:])
	q := slurmctl.ReservationRequest{Name: words[0], Users: []string{"root"}}
	if q.Nodes, err = slurmctl.ExpandNodes(words[1]); err != nil {
		return err
	}
	lasts, err := time.ParseDuration(o["for"])
	if err != nil {
		return err
	}
	q.Start = h.s.Cluster.Now()
	if text, later := o["in"]; later {
		in, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		q.Start = q.Start.Add(in)
	}
	q.End = q.Start.Add(lasts)
	if q.End.After(h.reserved) {
		h.reserved = q.End
	}
	if text, given := o["flags"]; given {
		q.Flags = strings.Split(text, ",")
	}
	if text, given := o["users"]; given {
		q.Users = strings.Split(text, ",")
	}
	h.s.Cluster.Go(func(*slurmsim.Process) {
		all, err := root.Reservations(context.Background())
		if slices.ContainsFunc(all, func(r slurmctl.Reservation) bool { return r.Name == q.Name }) {
			err = root.UpdateReservation(context.Background(), q.Name, slurmctl.ReservationUpdate{Nodes: q.Nodes, End: q.End, Users: q.Users})
		} else if err == nil {
			err = root.CreateReservation(context.Background(), q)
		}
		if err != nil {
			h.say(fmt.Sprintf("reserve: %v", err))
		}
	})
	return nil
}

// asks takes over what else a job asks for.
func asks(q *slurmsim.Job, o map[string]string) (err error) {
	q.QOS, q.Constraint, q.Licenses, q.Reservation = o["qos"], o["constraint"], o["licenses"], o["in"]
	if text, given := o["mem"]; given {
		mem, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		q.MemoryPerNode = &mem
	}
	if text, given := o["gres"]; given {
		if q.GRES, err = slurmctl.ParseGRES(text); err != nil {
			return err
		}
	}
	if text, given := o["cpus"]; given {
		q.CPUs, err = strconv.Atoi(text)
	}
	if text, given := o["cores"]; given && err == nil { // in a socket
		var n uint64
		n, err = strconv.ParseUint(text, 10, 16)
		q.Layout.Cores = uint16(n)
	}
	if most, wait, given := strings.Cut(o["switches"], "@"); given && err == nil {
		if q.Switches, err = strconv.Atoi(most); err == nil {
			q.SwitchWait, err = time.ParseDuration(wait)
		}
	}
	return err
}

// tell tells what evosqueue shows of a job.
func (h *history) tell(name string) {
	if v := h.s.View(); v != nil {
		for _, j := range v.Jobs {
			if j.ID == uint32(h.jobs[name]) {
				h.say(fmt.Sprintf("%s is %s on %d nodes: %s", name, j.State, j.Nodes, j.Reason))
				return
			}
		}
	}
	h.say(name + " is not known")
}

// price says what the holds of a job have kept idle.
func (h *history) price(name string) {
	if v := h.s.View(); v != nil {
		for _, j := range slices.Concat(v.Jobs, v.Ended) {
			if j.ID == uint32(h.jobs[name]) {
				h.say(fmt.Sprintf("%s: %d node-seconds held idle", name, j.HeldIdle))
			}
		}
	}
}

// change NAME WHAT [wait=] [current=] [dry]: a change from outside the job.
func (h *history) change(words []string) error {
	if len(words) < 2 {
		return errors.New("change NAME WHAT")
	}
	req, err := parseChange(words[1])
	if err != nil {
		return err
	}
	o := options(words[2:])
	_, req.DryRun = o["dry"]
	if u := req.Update; u != nil {
		for key, to := range map[string]*int64{"current": &u.Current, "wait": &u.Wait} {
			if text, given := o[key]; given {
				if *to, err = planner.ParseDuration(text); err != nil {
					return err
				}
			}
		}
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		c, err := h.s.Change(p, id, *req)
		if a := h.apps[words[0]]; a != nil && (err == nil || c.Accepted) {
			a.answered(c)
		}
	})
	return nil
}

// progress NAME FRACTION: an application reports how far it is.
func (h *history) progress(words []string) error {
	if len(words) != 2 {
		return errors.New("progress NAME FRACTION")
	}
	fraction, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		return err
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		_, _ = h.s.Progress(p, id, fraction, func() bool { return true }) // the reply is part of the history
	})
	return nil
}

// set has an operator set keys of the configuration at run time, KEY=VALUE each.
func (h *history) set(words []string) error {
	theirs := h.s.Policy
	if err := configure(&h.s.Config, &theirs, words); err != nil {
		return err
	}
	cfg := h.s.Config
	h.s.give(msg.Configuration{Config: &cfg, Strategy: msg.Strategy{ExpandLimit: planner.ExpandLimitOf(h.s.Strategy), Plugin: h.s.Policy != nil}})
	return nil
}

// place KEY [PROFILE[/PROFILE…]] [user=] [partition=] [exclude=] [minutes=] [drive=] [withdraw]: a user asks where a job would run.
func (h *history) place(words []string) error {
	if len(words) < 2 {
		return errors.New("place KEY PROFILE, or place KEY withdraw")
	}
	return h.question(words, func(*api.Placement) {}) // the reply is part of the history
}

// question does what place does, and calls a function with the answer.
func (h *history) question(words []string, answered func(*api.Placement)) error {
	o := options(words[1:])
	q := &api.PlacementQuery{ID: words[0], Partition: o["partition"], Exclude: o["exclude"]}
	if _, q.Withdraw = o["withdraw"]; !q.Withdraw {
		sp := request.Request{Drive: drivemode.Mode(o["drive"])}
		err := sp.Set("profile", words[1])
		if strings.Contains(words[1], "/") {
			a := &App{}
			if a.Alternatives, err = request.ParseAlternatives(strings.ReplaceAll(words[1], "/", "|")); err == nil {
				sp.Profile = a.Alternatives[0]
				a.mold(&sp)
			}
		}
		if err := cmp.Or(err, given(o, "minutes", &q.Minutes, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })); err != nil {
			return err
		}
		q.Request, _ = sp.Marker()
	}
	user := userNamed(o["user"])
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		if r, ok := h.s.call(p, msg.Call{UID: user.UID, User: user.Name, Place: q}); ok && r.Place != nil {
			answered(r.Place)
		}
	})
	return nil
}

// cancelHolds NAME: an operator cancels the holds of a job.
func (h *history) cancelHolds(words []string) error {
	if len(words) != 1 {
		return errors.New("cancelholds NAME")
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		h.s.call(p, msg.Call{Job: uint32(id), Cancel: &api.CancelHolds{By: "root"}}) // the reply is part of the history
	})
	return nil
}
