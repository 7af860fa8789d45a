package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// state is a state of the API with the names that users know it by, first the code in the table.
type state struct {
	api   string
	names []string
}

var states = []state{
	{"queued", []string{"PD", "PENDING", "QUEUED"}},
	{"starting", []string{"CF", "CONFIGURING", "STARTING"}},
	{"running", []string{"R", "RUNNING"}},
	{"waiting", []string{"WT", "WAITING"}},
	{api.Suspended, []string{"S", "SUSPENDED"}},
}

// ends are Slurm's states of ended jobs.
var ends = []state{
	{"COMPLETED", []string{"CD"}}, {"CANCELLED", []string{"CA"}}, {"FAILED", []string{"F"}},
	{"TIMEOUT", []string{"TO"}}, {"NODE_FAIL", []string{"NF"}}, {"OUT_OF_MEMORY", []string{"OOM"}},
	{"BOOT_FAIL", []string{"BF"}}, {"DEADLINE", []string{"DL"}}, {"PREEMPTED", []string{"PR"}},
}

// others lists squeue's further states, which no evolving job is shown in.
var others = []state{
	{"COMPLETING", []string{"CG"}}, {"RESIZING", []string{"RS"}}, {"RESV_DEL_HOLD", []string{"RD"}}, {"REQUEUED", []string{"RQ"}}, {"REQUEUE_FED", []string{"RF"}},
	{"REQUEUE_HOLD", []string{"RH"}}, {"REVOKED", []string{"RV"}}, {"SIGNALING", []string{"SI"}}, {"SPECIAL_EXIT", []string{"SE"}}, {"STAGE_OUT", []string{"SO"}},
	{"STOPPED", []string{"ST"}},
}

// stateName returns a job's state in one word.
func stateName(j api.Job) string {
	if j.State == "ended" && j.EndState != "" {
		return j.EndState
	}
	return strings.ToUpper(j.State)
}

// stateCode returns a job's state in two letters or so, as in squeue's ST.
func stateCode(j api.Job) string {
	for _, s := range states {
		if s.api == j.State {
			return s.names[0]
		}
	}
	for _, s := range ends {
		if strings.EqualFold(s.api, j.EndState) {
			return s.names[0]
		}
	}
	return stateName(j)
}

// filter is which jobs are shown; an empty list does not narrow.
type filter struct {
	users, partitions, names []string
	accounts, nodes          []string // nodes by their single names
	states                   []string // in stateSet's form
	ids                      []api.JobName
	all                      bool // ended ones too
}

// stateSet converts the user's names of states to the API's, or Slurm's for ends, and reports
// whether ended jobs are among them.
func stateSet(words []string) (set []string, ended bool, err error) {
	for _, word := range words {
		upper := strings.ToUpper(word)
		if upper == "ALL" {
			return nil, true, nil
		}
		found := false
		for _, s := range states {
			if slices.Contains(s.names, upper) {
				set, found = append(set, s.api), true
			}
		}
		if upper == "R" || upper == "RUNNING" {
			set = append(set, "waiting") // to Slurm such a job runs
		}
		for _, s := range ends {
			if s.api == upper || s.names[0] == upper {
				set, found, ended = append(set, s.api), true, true
			}
		}
		for _, s := range others {
			if s.api == upper || s.names[0] == upper {
				set, found = append(set, s.api), true
			}
		}
		if !found {
			return nil, false, fmt.Errorf("invalid job state: %s; there are %s and all", word, strings.Join(stateCodes(), ", "))
		}
	}
	return set, ended, nil
}

// stateCodes returns the codes that --states takes.
func stateCodes() (codes []string) {
	for _, s := range slices.Concat(states, ends, others) {
		codes = append(codes, s.names[0])
	}
	return codes
}

// jobIDs reads job IDs: ID or ARRAY_TASK.
func jobIDs(words []string) ([]api.JobName, error) {
	var ids []api.JobName
	for i, word := range words {
		if word == "" && i > 0 { // "7,": squeue takes it
			continue
		}
		id, err := api.ParseJobName(word)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// known returns an error if no job has one of the requested IDs. Like squeue, it ignores unknown
// IDs beside known ones.
func (f filter) known(jobs []api.Job) error {
	if len(f.ids) == 0 || slices.ContainsFunc(jobs, f.named) {
		return nil
	}
	words := make([]string, len(f.ids))
	for i, id := range f.ids {
		words[i] = id.String()
	}
	return fmt.Errorf("invalid job id specified: %s (no evolving job, or one that ended long ago)", strings.Join(words, ", "))
}

// named reports whether one of the requested IDs is the job's, or its array's.
func (f filter) named(j api.Job) bool {
	return slices.ContainsFunc(f.ids, func(n api.JobName) bool { return n.Is(&j) })
}

func (f filter) shows(j api.Job) bool {
	in := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	condition := j.State
	if condition == "ended" {
		condition = strings.ToUpper(j.EndState)
	}
	uid := strconv.FormatUint(uint64(j.UID), 10)
	return (in(f.users, j.User) || in(f.users, uid)) &&
		in(f.partitions, j.Partition) && in(f.accounts, j.Account) && (len(f.nodes) == 0 || shares(j, f.nodes)) && in(f.names, j.Name) && in(f.states, condition) &&
		(len(f.ids) == 0 || f.named(j))
}

// apply selects the jobs to show, in the order of their starts, those without one last.
func (f filter) apply(jobs []api.Job) []api.Job {
	shown := []api.Job{}
	for _, j := range jobs {
		if f.shows(j) {
			shown = append(shown, j)
		}
	}
	slices.SortStableFunc(shown, func(a, b api.Job) int {
		if a.Start.IsZero() != b.Start.IsZero() {
			if a.Start.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
	})
	return shown
}
