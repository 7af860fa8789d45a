package submit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// checkChain checks that the job can be a chain, where every step is a separate job.
func (r *submission) checkChain() error {
	for i := range r.request.Profile {
		if err := r.options.refuseTasks(r.request.Profile[i].Nodes); err != nil {
			return err
		}
		if _, err := r.chainStep(i, 1<<32-1, 1<<32-1); err != nil { // the longest marker
			return err
		}
	}
	return nil
}

// chainStep returns the submission of step i, 0-based, after the job previous in the
// chain that the job first began.
func (r *submission) chainStep(i int, first, previous uint32) (step, error) {
	link := &request.ChainLink{Step: i + 1}
	if i > 0 {
		link.First = first
	}
	marker, err := r.marker(link)
	if err != nil {
		return step{}, err
	}
	s := step{
		nodes:   r.request.Profile[i].Nodes,
		time:    r.linkLimit(r.request.Profile, i),
		marker:  marker,
		request: r.request,
		extra:   r.exportOption(i),
	}
	s.request.Chain = link
	if i > 0 {
		s.extra = append(s.extra, "--dependency=afterok:"+strconv.FormatUint(uint64(previous), 10), "--kill-on-invalid-dep=yes")
		if _, given := r.options.last("open-mode"); !given {
			s.extra = append(s.extra, "--open-mode=append") // steps may share an output file
		}
	}
	return s, nil
}

// stepVariables returns the variables that tell the script its step of the chain.
func stepVariables(i int, profile planner.Profile) []string {
	return []string{"EVO_STEP=" + strconv.Itoa(i+1), "EVO_STEPS=" + strconv.Itoa(len(profile))}
}

// exportOption adds the step's variables to the user's list of exported variables. The default ALL
// includes them, and with NONE or NIL the user wants none.
func (r *submission) exportOption(i int) []string {
	o, given := r.options.last("export")
	if !given || !o.HasValue {
		return nil
	}
	for name := range strings.SplitSeq(o.Value, ",") {
		switch strings.ToUpper(name) {
		case "ALL", "NONE", "NIL":
			return nil
		}
	}
	return []string{"--export=" + o.Value + "," + strings.Join(stepVariables(i, r.request.Profile), ",")}
}

// parseJobID reads what sbatch --parsable prints: the id, and perhaps a cluster.
func parseJobID(text string) (uint32, error) {
	line := strings.TrimSpace(text)
	if at := strings.LastIndexByte(line, '\n'); at >= 0 {
		line = line[at+1:] // a site's plugins may print above
	}
	digits, _, _ := strings.Cut(line, ";")
	id, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || id == 0 {
		return 0, errors.New("sbatch printed no job id: " + strconv.Quote(legible.Brief(text)))
	}
	return uint32(id), nil
}
