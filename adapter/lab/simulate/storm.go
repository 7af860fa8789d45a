package simulate

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// storm is how long things happen, in virtual time. What was begun has calm after it, or longer if all jobs one
// after the other need longer.
const (
	storm = 40 * time.Minute
	calm  = 5 * time.Hour
)

// Storm makes a random history: a cluster, a workload, and everything that may go wrong with it for
// a while; then calm, in which all jobs must end. Equal seeds make equal histories.
func Storm(seed uint64) string {
	g := &storming{Rand: rand.New(rand.NewPCG(seed, 0))}
	nodes := 4 + g.IntN(9)
	cluster := fmt.Sprintf("cluster nodes=%d", nodes)
	if merges := g.IntN(3) > 0; merges {
		cluster += " accounting merge"
	}
	if seed%7 == 3 { // by chances of their own
		cluster += " switches=" + someSwitches(rand.New(rand.NewPCG(seed, 41)), nodes)
	}
	if seed%7 == 5 { // by chances of their own
		cluster += " blocks=" + someLevels(rand.New(rand.NewPCG(seed, 57)), nodes) + " version=24.11.5"
	}
	head := []string{fmt.Sprintf("# storm %d", seed), cluster, fmt.Sprintf("random %d", seed),
		fmt.Sprintf("config poll=%v grace=%v overrun=%s", g.pick("1s", "2s", "5s"), g.pick("20s", "60s"), g.pick("tolerate", "shrink", "cancel"))}
	if seed%2 == 1 {
		head = append(head, "rest")
	}
	g.nodes = nodes
	var apps []string
	for i := range 1 + g.IntN(5) {
		apps = append(apps, g.app(i))
	}
	for i := range g.IntN(5) {
		name := fmt.Sprintf("stock%d", i)
		minutes := 1 + g.IntN(20)
		g.lasts(time.Duration(minutes) * time.Minute)
		g.at(g.when(storm), "stock %s %d %dm %ds user=%s", name, 1+g.IntN(nodes), minutes+g.IntN(20), 60*minutes-g.IntN(50), g.pick("alice", "bob"))
	}
	for range g.IntN(12) {
		g.mishap(apps)
	}
	for i := range g.IntN(3) {
		g.demanding(i)
	}
	for range g.IntN(4) {
		g.at(g.when(storm), "change %s %s%s", apps[g.IntN(len(apps))], g.change(), g.pick("", " dry", " wait=5m", " current=90s"))
	}
	if seed%4 == 0 { // by chances of their own
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 14))}
		for range o.IntN(4) {
			o.at(o.when(storm), "cancelholds %s", apps[o.IntN(len(apps))])
		}
		g.add(o)
	}
	if seed%3 == 0 { // by chances of their own
		m := &storming{Rand: rand.New(rand.NewPCG(seed, 12)), nodes: nodes}
		p := &storming{Rand: rand.New(rand.NewPCG(seed, 13))}
		for i := range 1 + m.IntN(4) {
			m.malleable(i)
			for range p.IntN(6) {
				p.at(p.when(storm), "progress malleable%d %.2f", i, 1.1*p.Float64())
			}
			for range p.IntN(4) {
				p.at(p.when(storm), "change malleable%d %s", i, p.pick("-1", "-2", "-3", "+1"))
			}
		}
		if p.IntN(3) == 0 { // a policy as a plugin
			head[3] += fmt.Sprintf(" theirs=%s/%d", p.pick("egs", "fpsma", "equipartition", "folding", "gain"), p.IntN(6))
		}
		g.add(m)
		g.add(p)
		head[3] += fmt.Sprintf(" policy=%s approach=%s threshold=%d", m.pick("egs", "fpsma", "equipartition", "folding", "gain"), m.pick("pwa", "pwa", "pra"), m.IntN(2)*m.IntN(3*nodes))
	}
	if seed%7 == 6 { // by chances of their own
		e := &storming{Rand: rand.New(rand.NewPCG(seed, 61)), nodes: nodes}
		for i := range 1 + e.IntN(3) {
			e.bestEffort(i)
		}
		head[3] += fmt.Sprintf(" best_effort=%d", e.IntN(2)*(nodes/2+1+e.IntN(nodes)))
		g.add(e)
	}
	if seed%5 == 0 { // by chances of their own
		h := &storming{Rand: rand.New(rand.NewPCG(seed, 15)), nodes: nodes}
		for i := range 1 + h.IntN(2) {
			h.hasty(i)
		}
		g.add(h)
	}
	if seed%2 == 0 { // by chances of their own
		l := &storming{Rand: rand.New(rand.NewPCG(seed, 16))}
		for range l.IntN(4) {
			l.at(l.when(storm), "requeue %s/%d", apps[l.IntN(len(apps))], 1+l.IntN(4))
		}
		g.add(l)
	}
	if seed%6 == 1 { // by chances of their own, and not if running jobs cannot be changed
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 17))}
		least := 5 + o.IntN(20)
		began := o.when(storm / 2)
		o.at(began, "answers %ds %ds", least, min(least+1+o.IntN(10), 29))
		o.at(began+o.when(storm-began), "answers promptly")
		g.add(o)
	}
	if seed%3 == 1 { // by chances of their own
		m := &storming{Rand: rand.New(rand.NewPCG(seed, 17)), nodes: nodes}
		m.hostile(apps)
		g.add(m)
	}
	d := &storming{Rand: rand.New(rand.NewPCG(seed, 21)), nodes: nodes} // by chances of their own
	head[3] += " max_delay=" + d.pick("0s", "1m", "5m", "20m", "1h")
	d.ahead()
	g.add(d)
	gd := &storming{Rand: rand.New(rand.NewPCG(seed, 47))} // by a chance of its own
	head[3] += " grow_delay=" + gd.pick("0s", "0s", "1m", "10m", "30m")
	if seed%4 == 3 { // by chances of their own
		r := &storming{Rand: rand.New(rand.NewPCG(seed, 18)), nodes: nodes}
		for i := range 1 + r.IntN(3) {
			r.greedy(i)
		}
		head[3] += fmt.Sprintf(" max_holds=%d shares=user:%d:%d:%d", 2+r.IntN(30), 1+r.IntN(100), 1+r.IntN(100), 1+r.IntN(100))
		g.add(r)
	}
	if seed%5 == 3 { // by chances of their own
		a, undriven := lists(seed)
		head[3] += undriven
		g.add(a)
	}
	if seed%9 == 4 { // by chances of their own
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 30))}
		began := o.when(storm / 2)
		o.at(began, "off drain")
		o.at(began+o.when(storm-began), "off resume")
		g.add(o)
	}
	if seed%6 == 4 { // by chances of their own
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 43)), nodes: nodes}
		for i := range 1 + o.IntN(2) {
			o.coupled(i)
		}
		g.add(o)
	}
	if seed%8 == 5 { // by chances of their own: a second host has copies of the database
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 32))}
		for t := o.when(time.Minute); t < storm; t += time.Minute {
			o.at(t, "ship")
		}
		for range 1 + o.IntN(4) {
			t := o.when(storm)
			o.at(t, "takeover")
			o.at(t+10*time.Second+o.when(20*time.Second), "start")
		}
		g.add(o)
	}
	if seed%6 == 2 { // by chances of their own: slurmctld runs on another host, whose clock differs
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 39))}
		ahead := func(t time.Duration) {
			o.at(t, "ahead %s", o.pick("4m", "90s", "7s", "1500ms", "-1500ms", "-7s", "-90s", "-4m"))
		}
		ahead(0)
		for range o.IntN(3) {
			ahead(o.when(storm))
		}
		g.add(o)
	}
	if seed%13 == 6 { // by chances of their own
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 55)), nodes: nodes}
		for i := range 1 + o.IntN(2) {
			o.array(i)
		}
		g.add(o)
	}
	if seed%7 == 1 { // by chances of their own: stock jobs share nodes
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 59)), nodes: nodes}
		head[1] += " mem=1000"
		g.sharing(o)
	}
	if seed%7 == 6 { // by chances of their own: nodes go off by plan
		head = append(head, g.powered(rand.New(rand.NewPCG(seed, 60)))...)
	}
	if seed%7 == 0 { // running jobs cannot be changed
		g.at(0, "plugin account")
	}
	if seed%11 == 0 { // jobs have step managers
		head[1] += " stepmgr"
	}
	if seed%5 == 2 { // by chances of its own
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 37))}
		head = append(head, "operator")
		for i := range g.lines {
			if how := o.pick("", "", "old", "never:1", "never:2", "dies:1", "dies", "slow:1", "slips:1", "longer:1", "forges:1", "leaves:1"); how != "" && strings.HasPrefix(g.lines[i].text, "submit ") {
				g.lines[i].text += " hands=" + how
				if how == "forges:1" || how == "leaves:1" { // the user's own job may keep its nodes until its limit
					g.deaf += leavesFor
				}
			}
		}
	}
	if seed%5 == 4 {
		head[1] += g.licensed(rand.New(rand.NewPCG(seed, 53)))
	}
	if seed%3 == 1 { // by chances of their own: jobs have aims
		o := &storming{Rand: rand.New(rand.NewPCG(seed, 45))}
		head[3] += " prefer_wait=" + o.pick("0s", "1m", "5m", "1h")
		for i := range g.lines {
			words := strings.Fields(g.lines[i].text)
			if aim := o.pick("", "start", "waste", "near"); aim != "" && words[0] == "submit" && !strings.Contains(words[2], "/") {
				g.lines[i].text += " aim=" + aim
			}
		}
	}
	if seed%10 == 8 && seed%3 == 2 && seed%7 > 0 {
		g.inside()
	}
	slices.SortStableFunc(g.lines, func(a, b timed) int { return int(a.at - b.at) })
	for _, l := range g.lines {
		head = append(head, fmt.Sprintf("%v %s", l.at.Round(time.Millisecond), l.text))
	}
	// all is well again
	for _, n := range g.down {
		head = append(head, fmt.Sprintf("%v up n%d", storm, n))
	}
	head = append(head, fmt.Sprintf("%v boot", storm), fmt.Sprintf("%v start", storm))
	for _, name := range g.hostiles { // once slurmctld is up: a job that can never start would stay
		head = append(head, fmt.Sprintf("%v cancel %s", storm, name))
	}
	if g.broken > 0 { // a crash may have undone that it was mended
		head = append(head, fmt.Sprintf("%v mended n%d", storm+time.Second, g.broken), fmt.Sprintf("%v up n%d", storm+10*time.Minute, g.broken))
	}
	if seed%9 == 7 {
		o := rand.New(rand.NewPCG(seed, 31))
		head = append(head, fmt.Sprintf("%v off release as=%s running=%s", storm+time.Duration(o.IntN(600))*time.Second, config.ReleaseAs[o.IntN(2)], config.ReleaseRunning[o.IntN(2)]),
			fmt.Sprintf("%v off check", storm+25*time.Minute))
	}
	head = append(head, fmt.Sprintf("%v heal", storm), fmt.Sprintf("%v end clean", storm+max(calm, g.work)+g.deaf))
	return strings.Join(head, "\n") + "\n"
}

// licensed lets some jobs ask for licences, which vanish for a while, perhaps. It returns the cluster's.
func (g *storming) licensed(chance *rand.Rand) string {
	total := 1 + chance.IntN(3)
	vanish, back := storm, storm
	if chance.IntN(3) == 0 {
		vanish = storm/2 + time.Duration(chance.Int64N(int64(storm/4)))
		back = vanish + time.Duration(chance.Int64N(int64(storm/4)))
	}
	for i, l := range g.lines {
		submits := strings.HasPrefix(l.text, "submit ") && !strings.Contains(l.text, " best=") || strings.HasPrefix(l.text, "stock ")
		refused := vanish <= l.at && l.at < back // by sbatch
		if submits && !refused && chance.IntN(2) == 0 {
			g.lines[i].text += fmt.Sprintf(" licenses=foo:%d", 1+chance.IntN(total))
		}
	}
	if vanish < storm {
		g.at(vanish, "licenses")
		g.at(back, "licenses foo:%d", total)
	}
	return fmt.Sprintf(" licenses=foo:%d", total)
}

// powered has Slurm save power, and the sidecar switch nodes off by plan. One of them fails to come up for a while, perhaps. It
// returns the lines that say so.
func (g *storming) powered(chance *rand.Rand) []string {
	o := &storming{Rand: chance, nodes: g.nodes}
	if node := 1 + o.IntN(g.nodes); o.IntN(3) == 0 {
		began := o.when(storm / 2)
		o.at(began, "broken n%d", node)
		o.at(began+o.when(storm/2), "mended n%d", node)
		g.broken = node
	}
	g.add(o)
	return []string{fmt.Sprintf("power suspend=%s down=%s boot=%s resume=%s", o.pick("1m", "5m", "2h"), o.pick("5s", "20s"), o.pick("10s", "30s"), o.pick("45s", "90s")),
		fmt.Sprintf("config watts=busy=300,idle=110,boot=160,off=10 power.mode=%s power.reserve=%d power.max_wait=%s", o.pick("act", "act", "act", "advise"), o.IntN(3), o.pick("0s", "30s", "1h"))}
}

// sharing has stock jobs ask for some CPUs and memory of their nodes, and submits more of these.
func (g *storming) sharing(o *storming) {
	for range o.IntN(8) {
		o.lasts(10 * time.Minute)
		o.at(o.when(storm), "stock share%d %d %dm %ds user=%s", len(o.lines), 1+o.IntN(3), 10+o.IntN(120), 60+o.IntN(540), o.pick("alice", "bob", "mallory"))
	}
	g.add(o)
	for i, l := range g.lines {
		if words := strings.Fields(l.text); words[0] == "stock" && len(words) == 6 && o.IntN(3) > 0 {
			g.lines[i].text += fmt.Sprintf(" cpus=%d mem=%d", 1+o.IntN(3), 100*(1+o.IntN(6)))
		}
	}
}

// inside has all jobs run in their user's reservation of the whole cluster, if none of them is a chain. An administrator takes a node out of it
// for a while, and gets it back though jobs run there (IGNORE_JOBS).
func (g *storming) inside() {
	if slices.ContainsFunc(g.lines, func(l timed) bool { return strings.Contains(l.text, "drive=chain") }) {
		return
	}
	for i, l := range g.lines {
		if strings.HasPrefix(l.text, "submit ") || strings.HasPrefix(l.text, "stock ") {
			g.lines[i].text = strings.ReplaceAll(l.text, "user=bob", "user=alice") + " in=course"
		}
	}
	all := append([]timed{{0, fmt.Sprintf("reserve course n[1-%d] for=900h users=alice flags=IGNORE_JOBS", g.nodes)}}, g.lines...)
	g.lines = append(all, timed{storm / 3, fmt.Sprintf("reserve course n[1-%d] for=900h users=alice", g.nodes-1)},
		timed{storm / 2, fmt.Sprintf("reserve course n[1-%d] for=900h users=alice", g.nodes)},
		timed{storm + time.Second, fmt.Sprintf("reserve course n[1-%d] for=900h users=alice", g.nodes)}) // again, in case slurmctld was away
}

// someSwitches puts one to four nodes on each switch.
func someSwitches(chance *rand.Rand, nodes int) string {
	var lists []string
	for first := 1; first <= nodes; {
		last := min(first+chance.IntN(4), nodes)
		lists = append(lists, fmt.Sprintf("n[%d-%d]", first, last))
		first = last + 1
	}
	return strings.Join(lists, "/")
}

// someLevels makes base blocks. Larger ones are made of two each, or of up to all of them, or there are none. Slurm takes jobs of any size.
func someLevels(chance *rand.Rand, nodes int) string {
	size, lists := someBlocks(chance, nodes)
	sizes, by := fmt.Sprint(size), 2
	switch kinds := chance.IntN(3); {
	case kinds == 1 && len(lists)%2 == 0: // of an odd one, Slurm would not count the last block for large jobs
		sizes += fmt.Sprintf(",%d", by*size)
	case kinds == 2:
		for ; by*size < 2*nodes; by *= 2 {
			sizes += fmt.Sprintf(",%d", by*size)
		}
	}
	return sizes + "/" + strings.Join(lists, "/")
}

// someBlocks makes base blocks with one to six nodes each. It returns how many of each count.
func someBlocks(chance *rand.Rand, nodes int) (size int, lists []string) {
	size = 1 + chance.IntN(3)
	for first := 1; first <= nodes; {
		last := first + size - 1 + chance.IntN(2)
		if last+size > nodes {
			last = nodes
		}
		lists = append(lists, fmt.Sprintf("n[%d-%d]", first, last))
		first = last + 1
	}
	return size, lists
}

// wayOf returns the first error without its numbers.
func wayOf(err error) string {
	if err == nil || errors.Is(err, ErrScript) {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, first)
}

type timed struct {
	at   time.Duration
	text string
}

type storming struct {
	*rand.Rand
	nodes  int
	lines  []timed
	broken int // a node that does not come up for a while; 0: none
	down   []int
	deaf   time.Duration // how long jobs run that never call next: they end by their limits
	work   time.Duration // how long all others run, one after the other

	hostiles []string // mallory's jobs, which end with the storm
}

// add adds what another one has made.
func (g *storming) add(o *storming) {
	g.lines = append(g.lines, o.lines...)
	g.work += o.work
	g.hostiles = append(g.hostiles, o.hostiles...)
}

// lasts notes how long a step or a job lasts at most, with the time that it takes to begin.
func (g *storming) lasts(most time.Duration) { g.work += most + 30*time.Second }

// app submits an evolving job.
func (g *storming) app(i int) string {
	name := fmt.Sprintf("app%d", i)
	steps := 1 + g.IntN(5)
	var profile, lasts []string
	for k := range steps {
		seconds := 30 + g.IntN(400)
		profile = append(profile, fmt.Sprintf("%d@%ds", 1+g.IntN(g.nodes), seconds))
		switch g.IntN(6) {
		case 0: // early
			lasts = append(lasts, fmt.Sprintf("%d:%ds", k+1, 1+g.IntN(seconds)))
		case 1: // late
			lasts = append(lasts, fmt.Sprintf("%d:%ds", k+1, seconds+g.IntN(200)))
		}
		g.lasts(time.Duration(seconds+200) * time.Second)
	}
	asked := strings.Join(profile, ",")
	molds := g.IntN(6) == 0
	for range 2 {
		for before := asked; molds && asked == before; {
			if other := fmt.Sprintf("%d@%ds", 1+g.IntN(g.nodes), 30+g.IntN(900)); !slices.Contains(strings.Split(asked, "/"), other) {
				asked += "/" + other
			}
		}
	}
	user, limit := g.pick("alice", "bob"), 60+g.IntN(60)
	text := fmt.Sprintf("submit %s %s user=%s limit=%dm", name, asked, user, limit)
	if molds {
		text += " by=" + g.pick("completion", "waste", "node-hours")
	}
	if len(lasts) > 0 {
		text += " lasts=" + strings.Join(lasts, ",")
	}
	switch g.IntN(12) {
	case 0:
		text += " deaf"
		g.deaf += time.Duration(limit) * time.Minute
	case 1:
		text += fmt.Sprintf(" abrupt=%d", 1+g.IntN(steps))
	case 2, 3:
		if molds && steps > 1 {
			break // every alternative of a chain has as many steps
		}
		text += " drive=chain"
	case 4, 5:
		text += " drive=companion"
	case 6:
		text += " expand=2"
	case 7:
		text += " expand=inf"
	}
	g.at(g.when(storm/2), "%s", text)
	return name
}

// demanding submits a job that grows and shrinks as it goes.
func (g *storming) demanding(i int) {
	var acts []string
	for range 1 + g.IntN(6) {
		what := g.change()
		if g.IntN(6) == 0 {
			what = "next"
		}
		acts = append(acts, fmt.Sprintf("%ds:%s", 5+g.IntN(200), what))
	}
	first := 1 + g.IntN(g.nodes)
	profile := fmt.Sprintf("%d@%dm", first, 5+g.IntN(20))
	claim := ""
	if g.IntN(2) == 0 {
		claim = fmt.Sprintf(" claim=%d", first+g.IntN(g.nodes-first+1))
	} else if g.IntN(3) == 0 {
		profile += fmt.Sprintf(",%d@%dm", 1+g.IntN(g.nodes), 1+g.IntN(10))
	}
	g.lasts(40 * time.Minute)
	g.at(g.when(storm/2), "submit demand%d %s user=%s drive=%s limit=%dm%s acts=%s", i, profile, g.pick("alice", "bob"), g.pick("auto", "companion"), 60+g.IntN(60), claim, strings.Join(acts, ","))
}

// bestEffort submits a best-effort job.
func (g *storming) bestEffort(i int) {
	least, minutes := 1+g.IntN(max(g.nodes/2, 1)), 2+g.IntN(30)
	g.lasts(time.Duration(minutes) * time.Minute)
	g.at(g.when(storm/2), "submit best%d %d-%d@%dm user=%s drive=%s grace=%ds best=%s says=%s", i, least, least+g.IntN(g.nodes-least+1), minutes, g.pick("alice", "bob"),
		g.pick("auto", "companion"), 5+g.IntN(60), g.pick("requeue", "requeue", "cancel"), g.pick("all", "none", "mute", "all,mute", "1,all+5s"))
}

// malleable submits a job that is malleable in its steps.
func (g *storming) malleable(i int) {
	sizes := g.pick("any", "any", "pow2", "multiple:2")
	var profile []string
	for range 1 + g.IntN(3) {
		least := 1 + g.IntN(max(g.nodes/2, 1))
		if sizes == "multiple:2" {
			least = 2
		}
		g.lasts(20 * time.Minute)
		profile = append(profile, fmt.Sprintf("%d-%d@%ds", least, max(2*least, least+g.IntN(g.nodes-least+1)), 30+g.IntN(900)))
	}
	var says []string
	for range 1 + g.IntN(4) {
		says = append(says, g.pick("all", "all@3m", "none", "mute", "1", "2@2m")+g.pick("", "", "+7s", "+25s", "+90s"))
	}
	g.at(g.when(storm/2), "submit malleable%d %s user=%s limit=%dm drive=%s size=%s grace=%ds says=%s", i, strings.Join(profile, ","), g.pick("alice", "bob"),
		60+g.IntN(60), g.pick("auto", "companion"), sizes, 5+g.IntN(60), strings.Join(says, ","))
}

// hasty submits a job with short steps. Some of them end at once, while the sidecar may be killed
// and restarted within a second.
func (g *storming) hasty(i int) {
	var profile, lasts []string
	for k := range 4 + g.IntN(9) {
		profile = append(profile, fmt.Sprintf("%d@%ds", 1+k%2*g.IntN(g.nodes), 1+g.IntN(9)))
		if g.IntN(2) == 0 {
			lasts = append(lasts, fmt.Sprintf("%d:%dms", k+1, 1+g.IntN(900)))
		}
	}
	t := g.when(storm / 2)
	text := fmt.Sprintf("submit hasty%d %s user=%s limit=60m drive=%s", i, strings.Join(profile, ","), g.pick("alice", "bob"), g.pick("auto", "auto", "companion"))
	if len(lasts) > 0 {
		text += " lasts=" + strings.Join(lasts, ",")
	}
	g.at(t, "%s", text)
	for range g.IntN(4) {
		killed := t + g.when(time.Minute)
		g.at(killed, "kill")
		g.at(killed+g.when(time.Second), "start")
	}
}

// coupled submits a job of coupled codes.
func (g *storming) coupled(i int) {
	codes := min(g.nodes, 2+g.IntN(2))
	all := make([]string, codes)
	for k := range all {
		var profile []string
		for range 1 + g.IntN(4) {
			seconds := 30 * (1 + g.IntN(8)) // boundaries often coincide
			profile = append(profile, fmt.Sprintf("%d@%ds", 1+g.IntN(g.nodes/codes), seconds))
			g.lasts(time.Duration(seconds+200) * time.Second)
		}
		all[k] = fmt.Sprintf("code%d:%s", k, strings.Join(profile, ","))
	}
	text := fmt.Sprintf("submit coupled%d %s user=%s limit=90m drive=%s", i, strings.Join(all, "/"), g.pick("alice", "bob"), g.pick("auto", "companion"))
	if g.IntN(2) == 0 {
		text += fmt.Sprintf(" lasts=1:%ds", 1+g.IntN(300))
	}
	g.at(g.when(storm/2), "%s", text)
}

// array submits an array. One of its tasks may fail, and users and administrators do something to single tasks, or to all.
func (g *storming) array(i int) {
	name, tasks := fmt.Sprintf("array%d", i), 1+g.IntN(7)
	var profile, lasts []string
	for k := range 1 + g.IntN(3) {
		seconds := 30 + g.IntN(300)
		profile = append(profile, fmt.Sprintf("%d@%ds", 1+g.IntN(g.nodes), seconds))
		if g.IntN(4) == 0 {
			lasts = append(lasts, fmt.Sprintf("%d:%ds", k+1, 1+g.IntN(seconds+200)))
		}
		for range tasks {
			g.lasts(time.Duration(seconds+200) * time.Second)
		}
	}
	text := fmt.Sprintf("submit %s %s user=%s limit=60m drive=%s array=%d", name, strings.Join(profile, ","), g.pick("alice", "bob"), g.pick("auto", "auto", "companion"), tasks)
	if g.IntN(2) == 0 {
		text += fmt.Sprintf("%%%d", 1+g.IntN(3))
	}
	if g.IntN(3) == 0 {
		text += fmt.Sprintf(" fails=%d", 1+g.IntN(tasks))
	}
	if len(lasts) > 0 {
		text += " lasts=" + strings.Join(lasts, ",")
	}
	began := g.when(storm / 2)
	g.at(began, "%s", text)
	for range g.IntN(6) {
		t, of := began+g.when(storm-began), fmt.Sprintf("%s_%d", name, 1+g.IntN(tasks))
		switch g.IntN(6) {
		case 0:
			g.at(t, "cancel %s", of)
		case 1, 2:
			g.at(t, "requeue %s", of)
		case 3:
			g.at(t, "change %s %s", of, g.change())
		case 4, 5: // of a task or of those that wait together
			of = g.pick(of, name)
			g.at(t, "hold %s", of)
			g.at(t+g.when(5*time.Minute), "release %s", of)
		}
	}
}

// ahead has alice keep nodes for growths far ahead, and others submit jobs that last longer.
func (g *storming) ahead() {
	for i := range 1 + g.IntN(2) {
		g.lasts(200 * time.Minute) // its limit, if it waits for a job that began before it and waits for its node
		g.at(g.when(storm/2), "submit ahead%d 1@%dm,%d@%dm user=alice limit=200m", i, 20+g.IntN(70), 2+g.IntN(g.nodes-1), 1+g.IntN(20))
	}
	for i := range 2 + g.IntN(7) {
		g.lasts(10 * time.Minute)
		g.at(g.when(storm), "stock held%d %d %dm %ds user=%s", i, 1+g.IntN(g.nodes), 10+g.IntN(120), 60+g.IntN(540), g.pick("bob", "mallory"))
	}
}

// greedy submits a job that wants more held than its share: many growths, or most nodes.
func (g *storming) greedy(i int) {
	profile := fmt.Sprintf("1@%ds", 60+g.IntN(3600))
	g.lasts(time.Hour)
	for range 1 + g.IntN(2)*g.IntN(40) {
		g.lasts(2 * time.Minute)
		profile += fmt.Sprintf(",%d@%ds,1@%ds", g.nodes-g.IntN(min(g.nodes-1, 3)), 5+g.IntN(60), 5+g.IntN(60))
	}
	g.at(g.when(storm/2), "submit greedy%d %s user=%s limit=180m drive=%s", i, profile, g.pick("alice", "alice", "bob"), g.pick("auto", "companion"))
}

// change returns a change of future steps.
func (g *storming) change() string {
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("-%d", 1+g.IntN(3))
	case 1:
		text := fmt.Sprintf("=%d@%ds", 1+g.IntN(g.nodes+1), 30+g.IntN(300))
		for range g.IntN(3) {
			text += fmt.Sprintf(".%d@%ds", 1+g.IntN(g.nodes), 30+g.IntN(300))
		}
		return text
	}
	text := fmt.Sprintf("+%d", 1+g.IntN(g.nodes/2))
	if g.IntN(2) == 0 {
		text += fmt.Sprintf("/%ds", 20+g.IntN(400))
	}
	if g.IntN(2) == 0 {
		text += fmt.Sprintf("?%ds", 1+g.IntN(900))
	}
	if g.IntN(3) == 0 {
		text += "!1"
	}
	return text
}

// mishap causes one fault.
func (g *storming) mishap(apps []string) {
	t := g.when(storm)
	for g.IntN(3) == 0 && t < storm {
		g.at(t, "fault %s", g.pick("drop", "lost", "late=3s", "slow=2s", "late=40s"))
		t += g.when(time.Minute)
	}
	app := apps[g.IntN(len(apps))]
	switch g.IntN(12) {
	case 0, 1: // the sidecar
		g.at(t, "kill")
		g.at(t+g.when(3*time.Minute), "start")
	case 2:
		g.at(t, "lose")
		g.at(t+g.when(time.Minute), "start")
	case 3:
		g.at(t, "crash")
		g.at(t+g.when(2*time.Minute), "boot")
	case 4, 5:
		n := 1 + g.IntN(g.nodes)
		g.down = append(g.down, n)
		g.at(t, "%s n%d", g.pick("down", "drain"), n)
		g.at(t+g.when(10*time.Minute), "up n%d", n)
	case 6:
		g.at(t, "cancel %s", app)
	case 7:
		g.at(t, "requeue %s", app)
	case 8:
		g.at(t, "suspend %s", app)
		g.at(t+g.when(5*time.Minute), "resume %s", app)
	case 9:
		g.at(t, "hold %s", app)
		g.at(t+g.when(5*time.Minute), "release %s", app)
	case 10:
		g.at(t, "forge trick%d %s", t, app)
	case 11:
		g.at(t, "clock %s", g.pick("1h", "90s", "5s", "-30s"))
	}
}

// Shrink removes lines from a history as long as the rest fails in the same way. It plays it at
// most that many times.
func Shrink(script string, most int) string {
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	way := wayOf(Play(script, io.Discard))
	wrong := func(lines []string) bool {
		most--
		return wayOf(Play(strings.Join(lines, "\n"), io.Discard)) == way
	}
	needed := func(l string) bool { // or nothing would come to an end
		return strings.HasPrefix(l, "cluster") || strings.Contains(l, " end") || strings.HasPrefix(l, storm.String())
	}
	for changed := true; changed && most > 0; {
		changed = false
		for size := max(len(lines)/4, 1); size >= 1; size /= 2 {
			for i := 0; i+size <= len(lines) && most > 0; {
				if slices.ContainsFunc(lines[i:i+size], needed) {
					i++
					continue
				}
				if rest := slices.Concat(lines[:i], lines[i+size:]); wrong(rest) {
					lines, changed = rest, true
				} else {
					i++
				}
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
