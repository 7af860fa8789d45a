package submit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// build makes a request as Command does, from words and a script.
func build(words, script string) (submission, error) {
	table := newOptionTable()
	line, err := table.Parse(strings.Fields(words), "")
	if err != nil {
		return submission{}, err
	}
	src := sources{line: line, options: layers{command: line.Options}}
	if src.options.script, err = table.fromScript([]byte(script), "job.sh"); err != nil {
		return submission{}, err
	}
	if src.evo, err = request.FromScript([]byte(script)); err != nil {
		return submission{}, err
	}
	r, _, err := newSubmission(src, request.Request{ExpandLimit: 1}, noon)
	return r, err
}

func TestWords(t *testing.T) {
	const park = " --begin=" + ParkedUntil
	for _, c := range []struct{ words, script, want string }{
		{"--profile=2@10m,5@30m job.sh a -N3", "",
			"--nodes=2 --exclusive --comment=evo:v2;p=2@10m,5@30m;; --time=41" + park + " job.sh a -N3"},
		{"--component=ocean --profile=2@10m,4@10m --component=atm --profile=4@20m job.sh", "#EVO --profile=9@1m",
			"--nodes=6 --exclusive --comment=evo:v2;p=6@10m,8@10m;o=ocean:2@10m,4@10m|atm:4@20m;; --time=21" + park + " job.sh"},
		{"job.sh", "#EVO --component=ocean --profile=2@10m\n#EVO --component atm --profile 1@5m",
			"--nodes=3 --exclusive --comment=evo:v2;p=3@5m,2@5m;o=ocean:2@10m|atm:1@5m;; --time=11" + park + " job.sh"},
		{"--profile=2@10m job.sh", "#EVO --component=ocean --profile=1@10m",
			"--nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " job.sh"},
		{"-J x -vv --expand-limit=2 -p main -- job.sh", "#EVO --profile=2@10m --drive=merge",
			"-J x -v -v -p main --nodes=2 --exclusive --comment=evo:v2;p=2@10m;x=2;d=merge;; --time=21" + park + " -- job.sh"},
		{"--profile=1@1m job.sh", "#EVO --profile=2@10m --expand-limit=inf",
			"--nodes=1 --exclusive --comment=evo:v2;p=1@1m;x=inf;; --time=3" + park + " job.sh"},
		{"--comment=mine --time=2:00:00 --begin=now+1hour job.sh", "#SBATCH --comment=theirs\n#EVO --profile=2@10m",
			"--comment=mine --time=2:00:00 --begin=now+1hour --nodes=2 --exclusive --comment=evo:v2;p=2@10m;b=1795179600;c=mine;;" + park + " job.sh"},
		{"job.sh", "#SBATCH --comment=theirs --begin=13:00 -t 100\n#EVO --profile=2@10m",
			"--nodes=2 --exclusive --comment=evo:v2;p=2@10m;b=1795179600;c=theirs;;" + park + " job.sh"},
		{"--begin=now-1hour job.sh", "#EVO --profile=2@10m",
			"--begin=now-1hour --nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " job.sh"},
		{"--gres=gpu:a100:2,nvme --mem-per-gpu=4G job.sh", "#EVO --profile=2@10m",
			"--gres=gpu:a100:2,nvme --mem-per-gpu=4G --nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " job.sh"},
		{"job.sh", "#SBATCH -G a100:4\n#EVO --profile=2@10m",
			"--nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " --gpus=a100:4 --gpus-per-node=a100:2 job.sh"},
		{"--gpus-per-task=1 --ntasks-per-node=2 job.sh", "#EVO --profile=2@10m",
			"--gpus-per-task=1 --ntasks-per-node=2 --nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " job.sh"},
		{"--test-only -N 2-2 job.sh", "#EVO --profile=2@10m",
			"--test-only -N 2-2 --nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11 job.sh"},
		{"--profile=energy,Task job.sh", "#EVO --profile=2@10m",
			"--profile=energy,Task --nodes=2 --exclusive --comment=evo:v2;p=2@10m;; --time=11" + park + " job.sh"},
	} {
		r, err := build(c.words, c.script)
		if err != nil {
			t.Errorf("%q: %v", c.words, err)
			continue
		}
		s, err := r.wholeCall()
		if err != nil {
			t.Errorf("%q: %v", c.words, err)
		}
		if diff := cmp.Diff(c.want, strings.Join(r.words(s), " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.words, diff)
		}
	}
}

func TestChainWords(t *testing.T) {
	for _, c := range []struct {
		words, script string
		want          []string
	}{
		{"--profile=2@10m,5@30m --drive=chain job.sh", "", []string{
			"--nodes=2 --exclusive --comment=evo:v2;p=2@10m,5@30m;d=chain;i=1;; --time=11 --begin=" + ParkedUntil + " job.sh",
			"--nodes=5 --exclusive --comment=evo:v2;p=2@10m,5@30m;d=chain;i=2;f=7;; --time=31 --begin=" + ParkedUntil + " --dependency=afterok:8 --kill-on-invalid-dep=yes --open-mode=append job.sh",
		}},
		{"--profile=2@10m,1@1h --drive=chain -d afterany:3 --export=A,B=2 --open-mode=truncate -t 60 job.sh", "", []string{
			"-d afterany:3 --export=A,B=2 --open-mode=truncate -t 60 --nodes=2 --exclusive --comment=evo:v2;p=2@10m,1@1h;d=chain;i=1;; --time=11 --begin=" + ParkedUntil + " --export=A,B=2,EVO_STEP=1,EVO_STEPS=2 job.sh",
			"-d afterany:3 --export=A,B=2 --open-mode=truncate -t 60 --nodes=1 --exclusive --comment=evo:v2;p=2@10m,1@1h;d=chain;i=2;f=7;; --time=60 --begin=" + ParkedUntil + " --export=A,B=2,EVO_STEP=2,EVO_STEPS=2 --dependency=afterok:8 --kill-on-invalid-dep=yes job.sh",
		}},
		{"--profile=1@10m,2@10m --drive=chain job.sh", "#SBATCH --gpus=2", []string{
			"--nodes=1 --exclusive --comment=evo:v2;p=1@10m,2@10m;d=chain;i=1;; --time=11 --begin=" + ParkedUntil + " --gpus=2 --gpus-per-node=2 job.sh",
			"--nodes=2 --exclusive --comment=evo:v2;p=1@10m,2@10m;d=chain;i=2;f=7;; --time=11 --begin=" + ParkedUntil + " --gpus=4 --gpus-per-node=2 --dependency=afterok:8 --kill-on-invalid-dep=yes --open-mode=append job.sh",
		}},
		{"--export=ALL,X=1 job.sh", "#EVO --drive=chain --profile=1@1s", []string{
			"--export=ALL,X=1 --nodes=1 --exclusive --comment=evo:v2;p=1@1s;d=chain;i=1;; --time=2 --begin=" + ParkedUntil + " job.sh",
		}},
	} {
		r, err := build(c.words, c.script)
		if err != nil {
			t.Errorf("%q: %v", c.words, err)
			continue
		}
		for i, want := range c.want {
			s, err := r.linkCall(i, 7, 8)
			if err != nil {
				t.Errorf("%q: %v", c.words, err)
			}
			if diff := cmp.Diff(want, strings.Join(r.words(s), " ")); diff != "" {
				t.Errorf("%q, step %d (-want +got):\n%s", c.words, i+1, diff)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("100@59s,", 200), ",")
	for _, c := range []struct{ words, script, reason string }{
		{"job.sh", "", "no evolution profile: give --profile="},
		{"--profile=energy job.sh", "", "no evolution profile"},
		{"--profile=2@ job.sh", "", "step 1: duration missing"},
		{"--expand-limit=0.5 --profile=1@1m job.sh", "", "expand limit 0.5 is below 1"},
		{"--drive=fast --profile=1@1m job.sh", "", `invalid drive mode "fast"`},
		{"-N4 --profile=2@1m job.sh", "", "--nodes=4: the profile says the nodes, 2 in the first step"},
		{"--profile=2@1m job.sh", "#SBATCH --nodes=1-4", "--nodes=1-4 (job.sh, line 1): the profile says the nodes"},
		{"--profile=2@1m --drive=chain job.sh", "#SBATCH --array=1-4", "--array=1-4 (job.sh, line 1): a chain cannot be an array: its steps are jobs of their own"},
		{"--profile=2@1m -a 1-4 job.sh", "#EVO --drive=chain", "--array=1-4: a chain cannot be an array"},
		{"--profile=2@1m --drive=merge --array=1-4 job.sh", "", "--array=1-4: Slurm merges nothing into the task that keeps an array's job ID"},
		{"--profile=2@1m --array=1-4 -J " + strings.Repeat("x", 1001) + " job.sh", "", ": the name of an array has at most 1000 bytes"},
		{"--profile=2@1m --gres=gpu;1 job.sh", "", "--gres=gpu;1: generic resource \"gpu;1\" is not understood"},
		{"--profile=2@1m -G1 job.sh", "", "--gpus=1: does not divide by the 2 nodes of the first step: give --gpus-per-node"},
		{"--profile=2@1m --gpus=4 --gpus-per-node=1 job.sh", "", "--gpus=4: is not what the nodes of the first step have by the other options: leave it out"},
		{"--profile=2@1m --gpus-per-task=1 job.sh", "", "--gpus-per-task=1: the tasks on a node must be known: give --ntasks-per-node, or --gpus-per-node instead"},
		{"--profile=2@1m --gres=shard:2 job.sh", "", "--gres=shard:2: shard:2 is part of a GPU, which Slurm gives no job that has whole nodes: ask for GPUs, as --gpus-per-node=1"},
		{"--profile=2@1m --gpus-per-socket=1 job.sh", "", "--gpus-per-socket=1: GPUs per socket cannot be planned yet: give --gpus-per-node"},
		{"--profile=2@1m --tres-per-task=gres/gpu:1 job.sh", "", "--tres-per-task=gres/gpu:1: resources per task cannot be planned yet: give --gres or --gpus-per-node, and --cpus-per-task"},
		{"--profile=2@1m --ntasks-per-gpu=2 --gpus-per-node=1 job.sh", "", "--ntasks-per-gpu=2: tasks per GPU cannot be planned yet: give --ntasks-per-node"},
		{"--profile=2@1m --gres=gpu:1 --drive=merge job.sh", "", "--drive=merge cannot work for a job that asks for gpu:1: Slurm merges no job with generic resources; leave it out"},
		{"--profile=2@1m -M other job.sh", "", "belongs to the cluster"},
		{"--profile=2@1m --reservation=r,s job.sh", "", "--reservation=r,s: an evolving job runs in one reservation: name only that, or add --rigid"},
		{"--profile=2@1m --reservation=r --drive=chain job.sh", "", "--reservation=r: the steps of a chain cannot be planned in a reservation yet"},
		{"--malleable=1-2 --time=5 --reservation=r job.sh", "", "--reservation=r: malleable jobs cannot be planned in a reservation yet"},
		{"--profile=2@1m --reservation=r --array=1-3 job.sh", "", "--reservation=r: tasks of an array cannot be planned in a reservation yet"},
		{"--profile=2@1m -n1 job.sh", "", "--ntasks=1: fewer tasks than the 2 nodes"},
		{"--profile=2@1m -s job.sh", "", "--oversubscribe: an evolving job has whole nodes"},
		{"--profile=2@1m --exclusive=user job.sh", "", "--exclusive=user: an evolving job has whole nodes"},
		{"--profile=2@1m --time-min=1 job.sh", "", "must not shorten"},
		{"--profile=2@1m --deadline=noon job.sh", "", "knows no deadlines"},
		{"--profile=2@2h -t 1:59:00 job.sh", "", "--time=1:59:00: shorter than the profile, which takes 2h"},
		{"--profile=2@1m --begin=whenever job.sh", "", `--begin=whenever: begin time "whenever" is not understood`},
		{"--profile=2@1m -w ./nodes job.sh", "", "name the nodes themselves"},
		{"--profile=2@1m,3@1m -w n[1-2] job.sh", "", "names 2 nodes, the profile goes up to 3"},
		{"--profile=2@1m -C [(a&c)|b] job.sh", "", "--constraint=[(a&c)|b]: in brackets, only features joined by | can be planned"},
		{"--profile=2@1m --prefer=[a|b] job.sh", "", "--prefer=[a|b]: alternatives cannot be preferred"},
		{"--profile=2@1m job.sh", "#SBATCH --prefer=a*2", "--prefer=a*2: numbers of nodes"},
		{"--profile=2@1m --prefer=a --max-nodes=3 job.sh", "", "--prefer=a: a job with a claim (--max-nodes) may have any nodes"},
		{"--profile=2@1m -C ((a)) job.sh", "", "only features joined"},
		{"--profile=2@1m -C [a*1&b*1] job.sh", "", "--constraint=[a*1&b*1]: numbers of nodes by feature cannot be planned, since a profile has several numbers of nodes: ask for a|b, or"},
		{"--profile=2@1m -w n[1-3 job.sh", "", "--nodelist=n[1-3: "},
		{"--profile=1@1m,4@1m --drive=chain -n 2 job.sh", "", "fewer tasks than the 4 nodes"},
		{"--profile=" + long + " job.sh", "", "write it into the script, as #EVO --profile="},
		{"job.sh --comment=x", "#EVO --profile=1@1m\n#SBATCH --comment=" + strings.Repeat("x", 1020), "--comment is too long: 1006 bytes of Slurm's 1024 are left"},
	} {
		_, err := build(c.words, c.script)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%.80q with %.80q: %v, want %q", c.words, c.script, err, c.reason)
		}
	}
	if _, err := build("--array=0-999999%100 --profile=2@1m,3@1m job.sh", "#SBATCH -J work"); err != nil {
		t.Errorf("an array: %v", err)
	}
	if _, err := build("-n 2 --exclusive -N2 --begin=now-1hour --profile=2@1m job.sh", "#SBATCH --exclusive=exclusive"); err != nil {
		t.Errorf("options that agree with the profile: %v", err)
	}
}

func TestLongProfileInScript(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("100@59s,", 200), ",")
	script := "#EVO --profile=" + long + " --expand-limit=2\n"
	r, err := build("--drive=auto --comment=hi job.sh", script)
	must.OK(t, err)
	text, err := r.marker(nil)
	if err != nil || text != "evo:v2;script;x=2;d=auto;c=hi;;" {
		t.Errorf("%q, %v", text, err)
	}
	s, ok, err := request.ParseMarker(text)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	given, _, err := request.FromStored([]byte(script))
	must.OK(t, err)
	if s, err = s.Join(given); err != nil || s.Profile.String() != r.request.Profile.String() {
		t.Errorf("the controller reads %.80s, %v", s.Profile, err)
	}
}

func TestCheckFit(t *testing.T) {
	partition := func(name string, hours int) slurmctl.Partition {
		limit := slurmctl.Unlimited
		if hours > 0 {
			limit = time.Duration(hours) * time.Hour
		}
		return slurmctl.Partition{Name: name, MaxTime: limit}
	}
	for _, c := range []struct {
		words   string
		places  []place
		allowed int64
		fitting string
		reason  string
	}{
		{"9@1m", nil, unlimited, "", ""},
		{"8@1m", []place{{partition("main", 0), nil, 8, ""}}, unlimited, "main", ""},
		{"2@1m,9@1m", []place{{partition("main", 0), nil, 8, ""}}, 0, "", "the profile goes up to 9 nodes, but partition main has 8 for this job"},
		{"9@1m", []place{{partition("main", 0), nil, 8, " with gpu:4"}}, 0, "", "the profile goes up to 9 nodes, but partition main has 8 for this job with gpu:4"},
		{"9@1m", []place{{partition("main", 0), nil, 8, ""}, {partition("big", 2), nil, 16, ""}}, 120, "big", ""},
		{"9@3h", []place{{partition("main", 0), nil, 8, ""}, {partition("big", 2), nil, 16, ""}}, 0, "",
			"the profile takes 180 and goes up to 9 nodes, but partition big allows 120, partition main has 8 for this job: choose one partition, and a shorter or smaller profile for it"},
		{"1@3h", []place{{partition("a", 1), nil, 8, ""}, {partition("b", 4), nil, 16, ""}, {partition("c", 3), nil, 16, ""}}, 180, "b,c", ""},
		{"1@1m", []place{{partition("main", 0), nil, 0, ""}}, 0, "", "the profile goes up to 1 node, but partition main has 0 for this job"},
		{"4@1h --time=150", []place{{partition("wide", 2), nil, 8, ""}, {partition("long", 4), nil, 2, ""}}, 0, "",
			"--time=150: the profile goes up to 4 nodes, but partition wide allows 120, partition long has 2 for this job: give --time=120 or less, or none"},
		{"4@1h --time=infinite", []place{{partition("wide", 2), nil, 8, ""}, {partition("long", 0), nil, 2, ""}}, 0, "",
			"--time=infinite: the profile goes up to 4 nodes, but partition wide allows 120, partition long has 2 for this job: give --time=120 or less, or none"},
		{"2@1h --time=infinite", []place{{partition("wide", 2), nil, 8, ""}, {partition("long", 0), nil, 2, ""}}, unlimited, "long", ""},
		{"4@1h --time=120", []place{{partition("wide", 2), nil, 8, ""}, {partition("long", 4), nil, 2, ""}}, 120, "wide", ""},
		{"4@1h,4@2h,4@1h --drive=chain", []place{{partition("wide", 2), nil, 8, ""}}, 120, "wide", ""},
		{"4@1h,4@3h --drive=chain", []place{{partition("wide", 2), nil, 8, ""}}, 0, "", "the profile takes 180, but partition wide allows 120"},
		{"4@1h --time=150 --drive=chain", []place{{partition("wide", 2), nil, 8, ""}}, 120, "wide", ""},
	} {
		r, err := build("--profile="+c.words+" job.sh", "")
		must.OK(t, err)
		fitting, got, err := checkFit(r, c.places)
		var names []string
		for _, p := range fitting {
			names = append(names, p.partition.Name)
		}
		if got != c.allowed || strings.Join(names, ",") != c.fitting || fmt.Sprint(err) != c.reason && !(err == nil && c.reason == "") {
			t.Errorf("%s in %v: %d, %v, %v", c.words, c.places, got, names, err)
		}
	}
}

func TestDriven(t *testing.T) {
	places := []place{{slurmctl.Partition{Name: "main"}, nil, 8, ""}, {slurmctl.Partition{Name: "big"}, nil, 8, ""}}
	for _, c := range []struct {
		partitions, in, out []string
		reason              string
	}{
		{nil, []string{"main", "big"}, nil, ""},
		{[]string{"big", "main"}, []string{"main", "big"}, nil, ""},
		{[]string{"other", "big"}, []string{"big"}, []string{"main"}, ""},
		{[]string{"evo", "other"}, nil, nil, "partition main,big has no evolving jobs here: choose --partition=evo or other"},
	} {
		in, out, err := driven(places, c.partitions)
		var names []string
		for _, p := range in {
			names = append(names, p.partition.Name)
		}
		if !slices.Equal(names, c.in) || !slices.Equal(out, c.out) || (err == nil) != (c.reason == "") || err != nil && err.Error() != c.reason {
			t.Errorf("driven %v: %v, not %v: %v", c.partitions, names, out, err)
		}
	}
}

func TestParseJobID(t *testing.T) {
	for text, want := range map[string]uint32{"12\n": 12, "12;cluster\n": 12, "plugin says hello\n12\n": 12} {
		if got, err := parseJobID(text); got != want || err != nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Submitted batch job 12\n", "0", "99999999999"} {
		if got, err := parseJobID(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"": "''", "a-b=c": "a-b=c", "a b": "'a b'", "it's": `'it'\''s'`, "$x;": "'$x;'", "é": "'é'"} {
		if got := quote(word); got != want {
			t.Errorf("%q is quoted as %s", word, got)
		}
	}
}
