package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestPrivateJobs checks that with PrivateData=jobs no command shows a user anything about other
// users' jobs, which look like jobs that do not exist. Users see their own jobs as usual, also from
// inside. Without a credential, nothing is visible.
func TestPrivateJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{ExtraConf: "PrivateData=jobs,usage"}, nil)
	id := s.submit("--job-name=secret", "--profile=1@2s,2@60s", "--wrap", `eval "$(evosctl next)"; evosctl events $SLURM_JOB_ID | grep -c "step 2 begun"; sleep 60`)
	see := func(user int, args ...string) string {
		t.Helper()
		out, errs, err := s.As(user, args[0], args[1:]...)
		if err != nil {
			t.Logf("user %d: %v: %v", user, args, err)
		}
		return out + errs
	}
	s.eventually("its owner sees the job grown", func() bool { return strings.Contains(see(0, "evosqueue", "-j", id), " 2/2 ") })
	looks := [][]string{
		{"evosqueue"}, {"evosqueue", "-t", "all"}, {"evosqueue", "--json=evoslurm", "-t", "all"}, {"evosqueue", "-l"}, {"evosqueue", "--gantt"},
		{"evosqueue", "-j", id}, {"evosctl", "events"}, {"evosctl", "events", id}, {"evosctl", "events", id, "--json"}, {"evosctl", "env", "--job=" + id},
	}
	for _, look := range looks {
		if own := see(0, look...); !strings.Contains(own, id) && !strings.Contains(own, "secret") {
			t.Errorf("%v tells the owner nothing: %s", look, own)
		}
		other := see(1, look...)
		for _, word := range []string{"secret", s.Cluster.Users()[0].Name, "uid", "n1"} {
			if strings.Contains(other, word) {
				t.Errorf("%v tells another user %q: %s", look, word, other)
			}
		}
		named := strings.Join(look, " ")
		if strings.Contains(named, id) {
			unknown := strings.ReplaceAll(see(1, strings.Fields(strings.ReplaceAll(named, id, "4711"))...), "4711", id)
			if other != unknown {
				t.Errorf("%v tells another user %q, and of a job that there is not %q", look, other, unknown)
			}
		} else if strings.Contains(other, " "+id+" ") {
			t.Errorf("%v tells another user of job %s: %s", look, id, other)
		}
	}
	text, err := s.Cluster.Run(context.Background(), slurmtest.Root, "env", append(s.Env(), bin+"/evosctl", "events")...)
	s.must(err)
	for _, want := range []string{"sidecar     the sidecar ", "job " + id, "adopted, profile 1@2s,2@1m", "started on n", "step 1 ended", "step 2 begun on n"} {
		if !strings.Contains(text, want) {
			t.Errorf("root reads no %q in the events:\n%s", want, text)
		}
	}
	for _, path := range []string{"status", "jobs", "jobs/" + id, "events"} {
		answer, err := http.Get("http://" + s.Address + "/v1/" + path)
		s.must(err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a credential %s is answered with %s", path, answer.Status)
		}
	}
	_, err = s.Cluster.Run(context.Background(), s.Cluster.Users()[0], "scancel", id)
	s.must(err)
	if got := messages(s.output(id)); len(got) == 0 || got[0] != "1" {
		t.Errorf("in the job: %q", got)
	}
	s.stop(syscall.SIGTERM)
}

// TestPrivateNodes: of nodes, partitions and reservations users see by Evoslurm, on the page and through the
// API, no more than sinfo and scontrol show them. Root sees all.
func TestPrivateNodes(t *testing.T) {
	t.Parallel()
	partitions := []slurmtest.Partition{{Name: "main", Nodes: "n[1-3]", Default: true, Extra: "DefaultTime=10"}, {Name: "secret", Nodes: "n[3-4]", Extra: "Hidden=YES"},
		{Name: "wheel", Nodes: "n5", Extra: "AllowGroups=root"}}
	const page = "/web/?span=3h0m0s"
	for private, want := range map[string][]string{"": {"n1", "n2", "n3", "theirs"}, "nodes,reservations": nil, "partitions": {"theirs"}} {
		t.Run("PrivateData="+private, func(t *testing.T) {
			conf := ""
			if private != "" {
				conf = "PrivateData=" + private
			}
			s := newSite(t, slurmtest.Options{Nodes: 5, Partitions: partitions, ExtraConf: conf}, nil)
			me, other := s.Cluster.Users()[0], s.Cluster.Users()[1]
			for name, user := range map[string]string{"mine": me.Name, "theirs": other.Name} {
				_, err := s.Cluster.Run(t.Context(), slurmtest.Root, "scontrol", "create", "reservation", "reservationname="+name, "starttime=now+60minutes", "duration=10", "nodes=n1", "users="+user, "flags=overlap")
				s.must(err)
			}
			if out, _, err := s.As(0, "sinfo", "--noheader", "--Node", "--format=%N %P"); err == nil || private == "" {
				told := strings.Fields(out) // Slurm's own word on it
				if got := slices.Contains(told, "n2"); got != slices.Contains(want, "n2") || slices.Contains(told, "n4") || slices.Contains(told, "n5") || slices.Contains(told, "secret") {
					t.Errorf("sinfo shows %q", told)
				}
			}
			s.eventually("root sees all", func() bool {
				whole := s.read(slurmtest.Root, page)
				return strings.Contains(whole, ">n5<") && strings.Contains(whole, "secret") && strings.Contains(whole, "theirs") && strings.Contains(whole, "mine")
			})
			shown := s.read(me, page)
			if !strings.Contains(shown, "</html>") {
				t.Fatal(shown)
			}
			for _, word := range []string{"n1", "n2", "n3", "n4", "n5", "secret", "wheel"} {
				if got := strings.Contains(shown, ">"+word+"<"); got != slices.Contains(want, word) {
					t.Errorf("the page shows %q: %v", word, got)
				}
			}
			out, _, err := s.As(0, "scontrol", "--oneliner", "show", "reservation")
			s.must(err)
			cluster := s.read(me, "/v1/cluster")
			for _, name := range []string{"mine", "theirs"} {
				if a, b := strings.Contains(out, "="+name+" "), strings.Contains(cluster, `"`+name+`"`); a != b || a != (name == "mine" || slices.Contains(want, name)) {
					t.Errorf("reservation %q is shown: %v, by Slurm: %v", name, b, a)
				}
			}
		})
	}
}

// read returns what a user gets from the Unix socket, or curl's message if no process listens.
func (s *site) read(user slurmtest.User, path string) string {
	s.t.Helper()
	text, err := s.Cluster.Run(s.t.Context(), user, "curl", "-s", "--unix-socket", s.Dir+"/run/api.sock", "http://sidecar"+path)
	if err != nil {
		return err.Error()
	}
	return text
}
