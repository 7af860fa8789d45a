package injob

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// If the job has a step manager (stepmgr, Slurm 24.05 and later), srun starts steps on nodes that a
// shrink took from the job, while another user's job has them (24.11, 26.05: measured). So srun
// gets either the nodes that it may use or those that it must exclude. The step manager knows only
// the nodes with which its job began, so srun -x may name only these.

// VarGaveBack has the nodes that the base job gave back since it began, as Slurm writes lists.
const VarGaveBack = "EVO_GAVE_BACK"

// within reports whether an environment is the base job's.
func within(a api.Allocation, getenv func(string) string) bool {
	return len(a.Parts) > 0 && getenv("SLURM_JOB_ID") == formatJob(a.Parts[0].Job)
}

func formatJob(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// gaveBack returns the nodes of the base job that its environment knows and it no longer has.
func gaveBack(a api.Allocation, getenv func(string) string) []string {
	if !within(a, getenv) {
		return nil
	}
	known := []string{getenv("SLURM_JOB_NODELIST")}
	if getenv(VarJob) == formatJob(a.Job) {
		known = append(known, getenv(VarGaveBack))
	}
	return lacking(a.Parts[0].NodeList, known...)
}

// lacking returns the nodes of has that are in none of the lists, sorted.
func lacking(has []string, lists ...string) (all []string) {
	had := make(map[string]bool, len(has))
	for _, name := range has {
		had[name] = true
	}
	for _, list := range lists {
		names, err := slurmctl.ExpandNodes(list)
		if err != nil {
			continue // the user's own
		}
		for _, name := range names {
			if !had[name] && validNode(name) {
				had[name] = true
				all = append(all, name)
			}
		}
	}
	slurmctl.SortNodes(all)
	return all
}

// Stale returns which nodes an environment still names that the job gave back; "": none.
func Stale(a api.Allocation, getenv func(string) string) string {
	if a.Done {
		return ""
	}
	var lists []string
	if within(a, getenv) {
		lists = append(lists, getenv("SLURM_JOB_NODELIST"))
	}
	if getenv(VarJob) == formatJob(a.Job) {
		lists = append(lists, getenv(VarNodeList))
	}
	gone := lacking(NodesOf(a), lists...)
	if len(gone) == 0 {
		return ""
	}
	return fmt.Sprintf("the environment still names %s, which the job gave back: nothing is started there (evaluate what evosctl next or evosctl env prints)", slurmctl.CompressNodes(gone))
}

// unsetStepMgr unsets SLURM_STEPMGR if commands must reach other Slurm jobs than the one of this
// environment. Otherwise srun would ask that job's step manager about all of them, but it knows
// only its own.
func unsetStepMgr(a api.Allocation, getenv func(string) string) []string {
	if getenv("SLURM_STEPMGR") == "" || len(a.Parts) == 1 && within(a, getenv) {
		return nil
	}
	return []string{"SLURM_STEPMGR"}
}

// placed returns srun's options for a job that is one Slurm job, so that srun starts nothing on
// nodes that the job no longer has.
func (c Command) placed(args srunArgs) ([]string, error) {
	if !within(c.Allocation, c.getenv) {
		return c.placedFromOutside(args)
	}
	if value, given := args.last("nodelist"); given && !strings.Contains(value, "/") {
		if _, err := chosen(c.Allocation, "nodelist", value); err != nil {
			return nil, err
		}
	}
	gone := gaveBack(c.Allocation, c.getenv)
	if len(gone) == 0 {
		return args.without("jobid"), nil
	}
	if args.has("relative") {
		return nil, errors.New("--relative: the job gave back nodes since it began, and srun still counts them; use --nodelist")
	}
	exclude := slurmctl.CompressNodes(gone)
	if value, given := args.last("exclude"); given && strings.Contains(value, "/") {
		return nil, fmt.Errorf("--exclude=%s: the job gave %s back, which must be excluded, too; write the nodes", value, exclude)
	} else if given {
		exclude = value + "," + exclude
	}
	return append(args.without("jobid", "exclude"), "--exclude="+exclude), nil
}

// placedFromOutside does what placed does if the environment does not know the job's earlier nodes:
// it names the nodes to use.
func (c Command) placedFromOutside(args srunArgs) ([]string, error) {
	shares, err := layOut(c.Allocation, args, c.getenv)
	if err != nil {
		return nil, err
	}
	s := shares[0]
	return append(args.without("jobid", "nodes", "ntasks", "nodelist", "exclude"), "--nodes="+strconv.Itoa(len(s.nodes)),
		"--ntasks="+strconv.Itoa(s.tasks), "--nodelist="+slurmctl.CompressNodes(s.nodes)), nil
}

// chosen returns the nodes that an option names. Those of --nodelist must be the job's.
func chosen(a api.Allocation, option, value string) (map[string]bool, error) {
	if strings.Contains(value, "/") {
		return nil, fmt.Errorf("--%s=%s: files are not read here while the job is several Slurm jobs; write the nodes", option, value)
	}
	names, err := slurmctl.ExpandNodes(value)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
	has, all := NodesOf(a), map[string]bool{}
	for _, name := range names {
		if option == "nodelist" && !slices.Contains(has, name) {
			return nil, fmt.Errorf("--nodelist: the job does not have %s, or gave it back", name)
		}
		all[name] = true
	}
	return all, nil
}
