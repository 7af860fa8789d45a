package image

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var archive = flag.String("image.archive", "", "the OCI archive of the image")

func TestMain(m *testing.M) {
	matrix.Entered()
	os.Exit(m.Run())
}

// unpacked is the image in a folder.
type unpacked struct {
	t      *testing.T
	dir    string // of the archive
	root   string
	config struct {
		User        string
		Entrypoint  []string
		Healthcheck struct{ Test []string }
	}
}

func (u *unpacked) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

// blob reads a file of the archive, whose name is its digest.
func (u *unpacked) blob(digest string, into any) {
	u.t.Helper()
	text, err := os.ReadFile(u.path(digest))
	u.must(err)
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); got != digest {
		u.t.Errorf("%s is %s", digest, got)
	}
	if into != nil {
		u.must(json.Unmarshal(text, into))
	}
}

func (u *unpacked) path(digest string) string {
	return u.dir + "/blobs/" + strings.Replace(digest, ":", "/", 1)
}

// descriptor names a file of the archive.
type descriptor struct{ Digest string }

func unpack(t *testing.T) *unpacked {
	u := &unpacked{t: t}
	var err error
	u.dir, err = os.MkdirTemp("", "evoslurm-image-") // not of the test: other users go through it
	u.must(err)
	t.Cleanup(func() { os.RemoveAll(u.dir) })
	u.must(os.Chmod(u.dir, 0o755))
	u.root = u.dir + "/root"
	u.must(os.Mkdir(u.root, 0o755))
	u.must(exec.Command("tar", "-C", u.dir, "-xf", *archive).Run())
	var index struct{ Manifests []descriptor }
	text, err := os.ReadFile(u.dir + "/index.json")
	u.must(err)
	u.must(json.Unmarshal(text, &index))
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	u.blob(index.Manifests[0].Digest, &manifest)
	var image struct{ Config any }
	image.Config = &u.config
	u.blob(manifest.Config.Digest, &image)
	for _, layer := range manifest.Layers {
		u.blob(layer.Digest, nil)
		u.must(exec.Command("tar", "-C", u.root, "-xpzf", u.path(layer.Digest)).Run())
	}
	host, err := os.Hostname() // engines write it there
	u.must(err)
	u.must(os.WriteFile(u.root+"/etc/hosts", []byte("127.0.0.1 localhost "+host+"\n"), 0o644))
	return u
}

// enter prepares a command of the image as the image's user.
func (u *unpacked) enter(r *rig.Rig, args ...string) *exec.Cmd {
	uid, gid, _ := strings.Cut(u.config.User, ":")
	cmd, err := matrix.Enter(u.t.Context(), u.root, []string{r.Cluster.Dir(), r.Dir}, "/usr/bin/setpriv", slices.Concat([]string{
		"--reuid=" + uid, "--regid=" + gid, "--clear-groups", "--no-new-privs", "--bounding-set=-all"}, args)...)
	u.must(err)
	cmd.Env = append(cmd.Env, "SLURM_CONF="+r.Cluster.Dir()+"/slurm.conf", "EVOSLURM_CONFIG="+r.Dir+"/evoslurm.yaml")
	return cmd
}

// TestImage has the image's sidecar drive a job that grows by merge.
func TestImage(t *testing.T) {
	if *archive == "" {
		t.Skip("make try-image")
	}
	u := unpack(t)
	if strings.HasPrefix(u.config.User, "0") || !slices.Equal(u.config.Entrypoint, []string{"/usr/sbin/evoslurmd"}) {
		t.Errorf("it starts %v as %s", u.config.Entrypoint, u.config.User)
	}
	for _, secret := range []string{"etc/munge/munge.key", "etc/evoslurm/evoslurm.yaml", "etc/slurm/slurm.conf"} {
		if _, err := os.Stat(filepath.Join(u.root, secret)); err == nil {
			t.Errorf("/%s is in the image", secret)
		}
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true})
	r, err := rig.New(cluster, u.root+"/usr/bin", "poll_interval: 250ms\n")
	u.must(err)
	t.Cleanup(func() { os.RemoveAll(r.Dir) })
	for _, dir := range []string{"/db", "/run"} {
		u.must(os.Mkdir(r.Dir+dir, 0o755))
		u.must(exec.Command("chown", u.config.User, r.Dir+dir).Run())
	}
	sidecar := u.enter(r, u.config.Entrypoint...)
	log, err := os.Create(r.Dir + "/log")
	u.must(err)
	sidecar.Stdout, sidecar.Stderr = log, log
	u.must(sidecar.Start())
	t.Cleanup(func() {
		_ = sidecar.Process.Kill()
		_ = sidecar.Wait()
		if text, _ := os.ReadFile(r.Dir + "/log"); t.Failed() {
			t.Logf("evoslurmd:\n%s", text)
		}
	})
	u.healthy(r)
	const job = `eval "$(evosctl next)"; srun sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l`
	out, errs, err := r.As(0, "evosbatch", "--wait", "--output=job.out", "--drive=merge", "--profile=1@2s,3@20s", "--wrap", job)
	text, _ := os.ReadFile(r.Dir + "/out/job.out")
	if err != nil || strings.TrimSpace(string(text)) != "3" {
		t.Errorf("the job: %v %s%s\n%s", err, out, errs, text)
	}
}

// healthy waits until the image's own check of its health succeeds.
func (u *unpacked) healthy(r *rig.Rig) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := u.enter(r, u.config.Healthcheck.Test[1:]...).CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			u.t.Fatalf("%v: %v\n%s", u.config.Healthcheck.Test, err, out)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
