package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestReplicas: a replica table is read by line, and hostile lines are refused with their number.
func TestReplicas(t *testing.T) {
	names := []string{"f", "/data/a b"}
	for text, want := range map[string]string{
		"":                                       "map[]",
		"# none\n\n 12 a,b f\n9 c other\n12 c f": "map[f:{f 12 [a b c]}]",
		"2K  a  /data/a b \n":                    "map[/data/a b:{/data/a b 2048 [a]}]",
		"0 a f":                                  "map[f:{f 0 [a]}]",
		"9223372036854775807 a f":                "map[f:{f 9223372036854775807 [a]}]",
		"12 a":                                   "error: line 1: ",
		"\n12":                                   "error: line 2: ",
		"-1 a f":                                 "error: line 1: \"-1\" is no size",
		"9000000T a f":                           "map[f:{f 9895604649984000000 [a]}]",
		"8388608T a f":                           "error: line 1: ",
		"1e3 a f":                                "error: line 1: ",
		"K a f":                                  "error: line 1: ",
		"1 a,,b f":                               "error: line 1: \"\" is no cluster's name",
		"1 -M f":                                 "error: line 1: ",
		"1 A f":                                  "error: line 1: ",
		"1 a f\n2 b f":                           "error: line 2: \"f\" has 2 bytes, and 1",
		"1 a f\n1 a " + strings.Repeat("x", longestRow): "error: line 2: ",
	} {
		if strings.HasPrefix(text, "9000000T") { // beyond 64 bits
			want = "error: line 1: "
		}
		got, err := replicasIn(strings.NewReader(text), names)
		if e, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.HasPrefix(err.Error(), e) {
				t.Errorf("%.40q: %v, %v, want %q", text, got, err, want)
			}
		} else if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%.40q: %v, %v, want %s", text, got, err, want)
		}
	}
}

// endless is a table without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	line := "#" + strings.Repeat(" ", 1022) + "\n"
	n := copy(p, line[e.read%1024:])
	e.read += int64(n)
	return n, nil
}

// TestReplicasBound: a table without an end is refused.
func TestReplicasBound(t *testing.T) {
	e := &endless{}
	if _, err := replicasIn(e, nil); err == nil || !strings.Contains(err.Error(), "larger than") || e.read > mostReplicas+longestRow {
		t.Errorf("%d bytes: %v", e.read, err)
	}
}

// TestMounted: a file is on the clusters that see its folder, also the folder that it is linked to.
func TestMounted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	must.OK(t, os.MkdirAll(dir+"/shared/x", 0o755))
	must.OK(t, os.Mkdir(dir+"/own", 0o755))
	must.OK(t, os.WriteFile(dir+"/shared/x/f", []byte("12345"), 0o644))
	must.OK(t, os.WriteFile(dir+"/own/g", nil, 0o644))
	must.OK(t, os.Symlink("../own/g", dir+"/shared/link"))
	sites := []Site{{Name: "a", Mounts: []string{dir}}, {Name: "b", Mounts: []string{"/none", dir + "/shared/"}}, {Name: "c", Mounts: []string{dir + "/share"}}, {Name: "d"}}
	for name, want := range map[string]string{
		dir + "/shared/x/f":        "[a b] 5",
		dir + "/own/../shared/x/f": "[a b] 5",
		dir + "/own/g":             "[a] 0",
		dir + "/shared/link":       "[a] 0",
		dir + "/shared/x":          "error: no regular file",
		dir + "/none":              "error: no such file",
		"shared/x/f":               "error: no absolute path",
		"/etc/passwd":              "error: no cluster",
		"/dev/zero":                "error: no regular file",
	} {
		f, err := mounted(name, sites)
		if e, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), e) {
				t.Errorf("%s: %v, want %q", name, err, e)
			}
		} else if got := fmt.Sprint(f.On, f.Size); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}

// trial is a command line that is placed among clusters a, b, and c. Their sidecars' answers are known.
type trial struct {
	start  map[string]int64 // second of the start on a cluster; none: it never runs there
	free   map[string]int
	asked  map[string][]api.PlacementQuery
	lock   sync.Mutex
	tables string
}

func (o *trial) sites(_ context.Context, names []string) (all []Site, err error) {
	if slices.Equal(names, []string{"all"}) {
		names = []string{"a", "b", "c"}
	}
	for _, name := range names {
		s := Site{Name: name, Cluster: still{version: "22.05.8"}, Wait: time.Minute, Defaults: request.Request{ExpandLimit: 1}, Mounts: []string{"/mounted/" + name},
			Refuses: func(context.Context) error { return nil },
			Place:   func(_ context.Context, q api.PlacementQuery) (api.Placement, error) { return o.answer(name, q) }}
		if name != "c" {
			s.StageIn = "/site/fetch it"
		}
		all = append(all, s)
	}
	return all, nil
}

// answer plans a job without a delay of its steps.
func (o *trial) answer(name string, q api.PlacementQuery) (api.Placement, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if q.Withdraw {
		return api.Placement{Ready: true}, nil
	}
	o.asked[name] = append(o.asked[name], q)
	r, _, err := request.ParseMarker(q.Request)
	start, takes := o.start[name]
	if err != nil || !takes {
		return api.Placement{}, errors.Join(err, errors.New("not here"))
	}
	from := noon.Add(time.Duration(start) * time.Second)
	return api.Placement{Ready: true, Now: noon, Start: from, End: from.Add(time.Duration(r.Profile.Duration()) * time.Second), Nodes: 9, Free: o.free[name]}, nil
}

// run returns the exit status, and what the command printed.
func (o *trial) run(t *testing.T, sbatch string, words ...string) (status int, out, errs string) {
	t.Helper()
	o.asked = map[string][]api.PlacementQuery{}
	var stdout, stderr bytes.Buffer
	cmd := Command{Args: words, Environ: []string{"PATH=" + os.Getenv("PATH")}, Stdout: &stdout, Stderr: &stderr, Sbatch: sbatch, Sites: o.sites, Cluster: still{version: "22.05.8"},
		Clusters: config.Clusters{Replicas: o.tables, Bandwidths: []string{"a b 100", "b a 1000", "* c 1"}}}
	status = cmd.Run(t.Context())
	return status, stdout.String(), stderr.String()
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	o := &trial{start: map[string]int64{"a": 0, "b": 100, "c": 0}, free: map[string]int{"a": 5, "b": 4, "c": 9}, tables: filepath.Join(t.TempDir(), "replicas")}
	must.OK(t, os.WriteFile(o.tables, []byte("60000 b big\n60000 a old\n60000 a,b both\n"), 0o644))
	return o
}

// TestCloseToFiles: a job goes to the cluster with room where its files are first, and the plan has the time of their transfers.
func TestCloseToFiles(t *testing.T) {
	o := newTrial(t)
	dir := t.TempDir()
	must.OK(t, os.WriteFile(dir+"/job.sh", []byte("#!/bin/sh\n#EVO --profile=2@10m,3@5m\n\ntrue\n"), 0o644))
	must.OK(t, os.WriteFile(dir+"/job.py", []byte("#!/usr/bin/python3\n#EVO --profile=2@10m,3@5m\n\ntrue\n"), 0o644))
	must.OK(t, os.WriteFile(dir+"/in.sh", []byte("#!/bin/sh\n#EVO --profile=2@10m --stage-in=big\n#EVO --stage-in=old\ntrue\n"), 0o644))
	job := dir + "/job.sh"
	for _, c := range []struct {
		words string
		want  string // cluster, profile there; or an error
		says  string
	}{
		{"--stage-in=both " + job, "a p=2@10m,3@5m", "a +0s +0s +15m"},
		{"--stage-in=big " + job, "a p=2@11m,3@5m", "b +1m40s +0s +16m40s"},
		{"--placement=close-to-files --stage-in=big " + job, "b p=2@10m,3@5m", "b has all input files"},
		{"--placement=close-to-files --stage-in=old " + job, "a p=2@10m,3@5m", "b +1m40s +10m +26m40s"},
		{"--placement=close-to-files --stage-in=big --stage-in=old " + job, "a p=2@11m,3@5m", "a has the input files after 1m0s"},
		{"--placement=close-to-files " + dir + "/in.sh", "a p=2@11m", "before the script: EVO_STAGE_FROM=b '/site/fetch it' -- big || exit"},
		{"--placement=close-to-files --stage-in=old " + dir + "/in.sh", "a p=2@10m", ""},
		{"--stage-in=big --profile=2@10m --wrap=true", "a p=2@11m", ""},
		{"--stage-in=big --moldable=2@10m,4@6m --wrap=true", "a p=2@11m|4@7m", ""},
		{"--stage-in=big --profile=2-4@10m --wrap=true", "a p=2-4@11m", ""},
		{"--stage-in=big --time=16 " + job, "a p=2@11m,3@5m", ""},
		{"--stage-in=big --time=15 " + job, "b p=2@10m,3@5m", "a +- +- +- +- +--time=15: shorter than the profile, which takes 16m"},
		{"--placement=cluster-min " + job, "c p=2@10m,3@5m", ""},
		{"--placement=flexible-cluster-min " + job, "c p=2@10m,3@5m", ""},
		{"--placement=worst-fit " + job, "c p=2@10m,3@5m", ""},
		{"--stage-in=big " + dir + "/job.py", "b p=2@10m,3@5m", "must begin with #!/bin/sh"},
		{"--placement=close-to-files " + job, "error: which files", ""},
		{"--stage-in=none " + job, "error: does not name \"none\", and it is no absolute path", ""},
		{"--stage-in=/none " + job, "error: no such file", ""},
		{"--stage-in=-rf " + job, "error: no name of a file", ""},
		{"--stage-in=big,, " + job, "error: no name of a file", ""},
		{"--stage-in=big --drive=chain " + job, "error: no cluster takes the job", "in a chain"},
		{"--stage-in=big --malleable=2-4 --time=10 --wrap=true", "error: no cluster takes the job", "lasts as long as its --time"},
		{"--stage-in=big --component=x --profile=2@10m --wrap=true", "error: no cluster takes the job", "let a job before it"},
		{"--stage-in=big --rigid " + job, "error: ", ""},
	} {
		status, out, errs := o.run(t, "false", append([]string{"-M", "a,b,c", "--dry-run"}, strings.Fields(c.words)...)...)
		if e, fails := strings.CutPrefix(c.want, "error: "); fails {
			if status == 0 || !strings.Contains(errs, e) || !strings.Contains(errs, c.says) {
				t.Errorf("%s: %d, %q%s", c.words, status, out, errs)
			}
			continue
		}
		cluster, profile, _ := strings.Cut(c.want, " ")
		asked := o.asked[cluster]
		if status != 0 || !strings.Contains(out, "--clusters="+cluster) || len(asked) != 1 || !strings.Contains(asked[0].Request, ";"+profile+";") || !regexp.MustCompile(c.says).MatchString(errs) {
			t.Errorf("%s: %d, want %s, asked %+v\n%s%s", c.words, status, c.want, asked, out, errs)
		}
		if strings.Contains(c.words, "=big") && !strings.Contains(errs, "no command that fetches files") {
			t.Errorf("%s: cluster c has no command\n%s", c.words, errs)
		}
	}
	if status, _, errs := o.run(t, "false", "--stage-in=big", job); status == 0 || !strings.Contains(errs, "give --clusters=") {
		t.Errorf("without clusters: %d, %s", status, errs)
	}
}

// TestStagedScript: sbatch gets the script with the command below all directives, under its name, and each name as one word.
func TestStagedScript(t *testing.T) {
	o := newTrial(t)
	o.start = map[string]int64{"a": 0}
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	const name = `/x/$(touch hurt) 'f`
	must.OK(t, os.WriteFile(o.tables, []byte("60000 b "+name+"\n"), 0o644))
	must.OK(t, os.WriteFile(dir+"/sbatch", []byte("#!/bin/sh\nfor w; do case $w in --wrap=*) printf '%s' \"${w#--wrap=}\";; */*.sh) basename $w; cat $w;; --bbf=*) cat ${w#*=};; esac; done >"+dir+"/got\necho Submitted batch job 7\n"), 0o755))
	line := `EVO_STAGE_FROM=b '/site/fetch it' -- '/x/$(touch hurt) '\''f' || exit` + "\n"
	must.OK(t, os.WriteFile(dir+"/job.sh", []byte("#!/bin/bash -e\n#SBATCH -J x\n#EVO --profile=2@10m\n\n#SBATCH -v\necho a\n"), 0o644))
	must.OK(t, os.WriteFile(dir+"/empty.sh", []byte("#!/bin/sh\n# none"), 0o644))
	for _, c := range []struct{ words, want string }{
		{dir + "/job.sh", "job.sh\n#!/bin/bash -e\n#SBATCH -J x\n#EVO --profile=2@10m\n\n#SBATCH -v\n" + line + "echo a\n"},
		{"--profile=2@10m " + dir + "/empty.sh", "empty.sh\n#!/bin/sh\n# none\n" + line},
		{"--profile=2@10m --wrap=true", line + "true"},
	} {
		status, out, errs := o.run(t, dir+"/sbatch", append([]string{"-M", "a", "--stage-in=" + name}, strings.Fields(c.words)...)...)
		got, _ := os.ReadFile(dir + "/got")
		if status != 0 || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %d\n%s\nwant\n%s\n%s%s", c.words, status, got, c.want, out, errs)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestInputBounds: the names of input files are bounded.
func TestInputBounds(t *testing.T) {
	var r request.Request
	for i := range request.MostInputs {
		must.OK(t, r.Set("stage-in", "f"+strconv.Itoa(i)))
	}
	must.OK(t, r.Set("stage-in", "f0")) // again
	for _, bad := range []string{"f" + strconv.Itoa(math.MaxInt32), "a\nb", strings.Repeat("x", 1025), "a\xff"} {
		if r.Set("stage-in", bad) == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
}
