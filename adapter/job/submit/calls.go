package submit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// call is one call of sbatch. It submits the whole job, or one step of a chain.
type call struct {
	nodes   int
	time    int64 // the time limit in minutes; 0: the user's own applies
	marker  string
	request request.Request // contents of the marker
	extra   []string        // further options
	rigid   bool            // an ordinary job, not parked and without a marker
	loud    bool            // sbatch must print the job's ID, even if the user wants it quiet
}

// complete sees that the request fits into the comments of all its calls.
func (r submission) complete() error {
	if !r.request.Drive.Means().StepsAreJobs {
		_, err := r.marker(nil)
		return err
	}
	for i := range r.request.Profile {
		if err := r.options.refuseTasks(r.request.Profile[i].Nodes); err != nil {
			return err
		}
		if _, err := r.linkCall(i, 1<<32-1, 1<<32-1); err != nil { // the longest marker
			return err
		}
	}
	return nil
}

// wholeCall submits the job as one Slurm job: the first step's nodes, everything's time.
func (r submission) wholeCall() (call, error) {
	marker, err := r.marker(nil)
	c := call{nodes: r.request.Profile[0].Nodes, marker: marker, request: r.request}
	if r.userTime == 0 {
		c.time = r.wholeLimit(r.request.Profile)
	} else if r.implied {
		c.time = r.userTime
	}
	return c, err
}

// linkCall submits step i, 0-based, after the job previous in the chain that the job first began.
func (r submission) linkCall(i int, first, previous uint32) (call, error) {
	link := &request.ChainLink{Step: i + 1}
	if i > 0 {
		link.First = first
	}
	marker, err := r.marker(link)
	if err != nil {
		return call{}, err
	}
	c := call{
		nodes:   r.request.Profile[i].Nodes,
		time:    r.linkLimit(r.request.Profile, i),
		marker:  marker,
		request: r.request,
		extra:   r.linkExport(i),
	}
	c.request.Chain = link
	if i > 0 {
		c.extra = append(c.extra, "--dependency=afterok:"+strconv.FormatUint(uint64(previous), 10), "--kill-on-invalid-dep=yes")
		if _, given := r.options.last("open-mode"); !given {
			c.extra = append(c.extra, "--open-mode=append") // steps may share an output file
		}
	}
	return c, nil
}

// words returns sbatch's arguments for a call: the user's options as written, then added ones,
// which override them, then the script.
func (r submission) words(c call) []string {
	var words []string
	for _, o := range r.options.command {
		if !isOwn(o) && !(c.loud && o.Name == "quiet") {
			words = append(words, o.Words...)
		}
	}
	words = append(words, "--nodes="+strconv.Itoa(c.nodes), "--exclusive")
	if !c.rigid {
		words = append(words, "--comment="+c.marker)
	}
	if !c.rigid && r.request.Nodes != "" {
		words = append(words, "--nodelist=") // none: the marker holds it
	}
	if !c.rigid && r.request.Prefer != "" {
		words = append(words, "--prefer=") // Slurm 22.05 refuses a first step for which too few nodes have the features
	}
	if c.time > 0 {
		words = append(words, "--time="+formatMinutes(c.time))
	}
	if !c.rigid && !r.testOnly { // a parked job would start at the end of the century
		words = append(words, "--begin="+ParkedUntil)
	}
	words = append(words, r.gres.options(c.nodes)...)
	words = append(words, r.variableExport()...)
	words = append(words, c.extra...)
	if r.options.target != "" {
		words = append(words, "--clusters="+r.options.target)
	}
	if r.dashes {
		words = append(words, "--")
	}
	return slices.Concat(words, r.operands)
}

// stepVariables returns the variables that tell the script its step of the chain.
func (r submission) stepVariables(i int) []string {
	variables := []string{"EVO_STEP=" + strconv.Itoa(i+1), "EVO_STEPS=" + strconv.Itoa(len(r.request.Profile))}
	for _, v := range r.frequencyVariables(i) {
		variables = append(variables, v[0]+"="+v[1])
	}
	return variables
}

// linkExport adds the step's variables to the user's list of exported variables. The default ALL
// includes them, and with NONE or NIL the user wants none.
func (r submission) linkExport(i int) []string {
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
	return []string{"--export=" + o.Value + "," + strings.Join(r.stepVariables(i), ",")}
}
