package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// schema is the version of the JSON that evosqueue writes: docs/schema.
const schema = 1

// queue is squeue; *slurmctl.Client is one.
type queue interface {
	QueueLines(ctx context.Context, q slurmctl.Queue) ([]slurmctl.QueueLine, string, error)
	QueueJSON(ctx context.Context, options []string, value string) (map[string]json.RawMessage, []slurmctl.QueueJob, error)
}

// newQueue returns squeue in the user's environment, without the formats and the cluster: it is
// this one, and squeue would print it above its lines.
func newQueue() *slurmctl.Client {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "SQUEUE_") || strings.HasPrefix(kv, "SLURM_CLUSTERS=")
	})
	return &slurmctl.Client{Env: env}
}

// newQueueOf returns squeue of another cluster of the site.
func newQueueOf(cluster *slurmctl.Client) *slurmctl.Client {
	queue := newQueue()
	queue.Dir, queue.Remote = cluster.Dir, cluster.Remote
	return queue
}

// owners maps Slurm jobs to evolving jobs: base jobs and the links of chains and, with all,
// companions.
func owners(jobs []api.Job, all bool) map[slurmctl.JobID]*api.Job {
	by := map[slurmctl.JobID]*api.Job{}
	for i, j := range jobs {
		by[slurmctl.JobID(j.ID)] = &jobs[i]
		if all || drivemode.Mode(j.Drive).Means().StepsAreJobs {
			for _, id := range j.SlurmJobs {
				by[slurmctl.JobID(id)] = &jobs[i]
			}
		}
	}
	return by
}

// keep returns the jobs that pass what squeue is not asked about.
func (o *options) keep(jobs []api.Job) []api.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j api.Job) bool {
		f := filter{states: o.filter.states, nodes: o.filter.nodes}
		if !ownStates(o.states) {
			f.states = nil
		}
		return !f.shows(j)
	})
}

// tell passes on squeue's messages and, with --verbose, how it was called.
func (o *options) tell(words []string, said string) {
	if o.verbose {
		fmt.Fprintf(o.stderr(), "evosqueue: squeue %s\n", strings.Join(words, " "))
	}
	_, _ = io.WriteString(o.stderr(), said)
}

func (o *options) stderr() io.Writer {
	if o.errs != nil {
		return o.errs
	}
	return os.Stderr
}

// inWords returns squeue's error in squeue's words.
func inWords(err error) error {
	var failed *slurmctl.CommandError
	if errors.As(err, &failed) && failed.ExitCode > 0 && failed.Message() != "" {
		return errors.New(failed.Message())
	}
	return err
}

// lines returns squeue's lines of only evolving jobs, with Evoslurm's fields in them. On a
// terminal, it also makes squeue's own fields printable, because squeue prints the names of others'
// jobs unchanged.
func (o *options) lines(ctx context.Context, from queue, jobs []api.Job, now time.Time, ascii, tty bool) (string, error) {
	own := func(part string) string {
		if tty {
			return legible.Printable(part, false)
		}
		return part
	}
	q := *o.query
	q.Options = o.inSqueue()
	lines, said, err := from.QueueLines(ctx, q)
	if err != nil {
		return "", inWords(err)
	}
	o.tell(q.Options, said)
	by := owners(o.keep(jobs), q.Steps != nil)
	var b strings.Builder
	for _, line := range lines {
		j := by[line.Job]
		if j == nil && line.Job != 0 {
			continue
		}
		b.WriteString(own(line.Parts[0]))
		for i, field := range q.Format.Own {
			f := fieldNamed(field.Name)
			text := f.title
			if j != nil {
				text = legible.Printable(f.text(*j, now), ascii)
			}
			b.WriteString(field.Text(text) + own(line.Parts[i+1]))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// ids returns the Slurm jobs that squeue's options pick, in squeue's order.
func (o *options) ids(ctx context.Context, from queue) ([]slurmctl.JobID, error) {
	format, err := slurmctl.ParseQueueFormat("", false)
	if err != nil {
		return nil, err
	}
	words := o.inSqueue()
	lines, said, err := from.QueueLines(ctx, slurmctl.Queue{Options: words, Format: format})
	if err != nil {
		return nil, inWords(err)
	}
	o.tell(words, said)
	ids := make([]slurmctl.JobID, len(lines))
	for i, l := range lines {
		ids[i] = l.Job
	}
	return ids, nil
}

// pick keeps the jobs that squeue's options select, in the requested order if any.
func (o *options) pick(ctx context.Context, from queue, jobs []api.Job) ([]api.Job, error) {
	ids, err := o.ids(ctx, from)
	if err != nil {
		return nil, err
	}
	by, place := owners(jobs, false), map[uint32]int{}
	for i, id := range ids {
		if j := by[id]; j != nil {
			if _, seen := place[j.ID]; !seen {
				place[j.ID] = i
			}
		}
	}
	jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { _, picked := place[j.ID]; return !picked })
	if o.sort != "" {
		slices.SortFunc(jobs, func(a, b api.Job) int { return place[a.ID] - place[b.ID] })
	}
	return jobs, nil
}

// document returns the output of squeue --json for only evolving jobs, each with the sidecar's view
// under the key evoslurm. Before 23.02, squeue's filters do not narrow its JSON; here they do.
func (o *options) document(ctx context.Context, from queue, jobs []api.Job) (string, error) {
	ids, err := o.ids(ctx, from)
	if err != nil {
		return "", err
	}
	document, all, err := from.QueueJSON(ctx, o.inSqueue(), o.jsonValue())
	if err != nil {
		return "", err
	}
	by := owners(o.keep(jobs), false)
	list := []json.RawMessage{}
	for _, job := range all {
		j := by[job.ID]
		if j == nil || !slices.Contains(ids, job.ID) {
			continue
		}
		own, err := json.Marshal(j)
		if err != nil {
			return "", err
		}
		// the object is not empty: it has a job_id
		open := strings.TrimSuffix(strings.TrimSpace(string(job.JSON)), "}")
		list = append(list, json.RawMessage(open+`,"evoslurm":`+string(own)+"}"))
	}
	if document["jobs"], err = json.Marshal(list); err != nil {
		return "", err
	}
	document["evoslurm"] = json.RawMessage(fmt.Sprintf(`{"version":%d}`, schema))
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil || !o.yaml_ {
		return string(text) + "\n", err
	}
	return toYAML(text)
}

// escapes matches JSON's escapes; YAML 1.1 has none for the solidus.
var escapes = regexp.MustCompile(`\\.`)

// toYAML writes JSON in YAML's block style, with the keys in their order.
func toYAML(text []byte) (string, error) {
	text = escapes.ReplaceAllFunc(text, func(e []byte) []byte {
		if e[1] == '/' {
			return e[1:]
		}
		return e
	})
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return "", err
	}
	var block func(*yaml.Node)
	block = func(n *yaml.Node) {
		n.Style &^= yaml.FlowStyle
		for _, c := range n.Content {
			block(c)
		}
	}
	block(&node)
	out, err := yaml.Marshal(&node)
	return "---\n" + string(out) + "...\n", err
}
