package e2e_test

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// inOverlay makes this executable run a program, in a mount namespace of its own
// in which all that is written below /usr goes to a folder instead.
const inOverlay = "__in-overlay"

func init() {
	if len(os.Args) > 3 && os.Args[1] == inOverlay {
		runtime.LockOSThread()
		fmt.Fprintln(os.Stderr, "overlay:", runInOverlay(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
}

func runInOverlay(dir string, command []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, sub := range []string{"/upper", "/work"} {
		if err := os.Mkdir(dir+sub, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", "/usr", "overlay", 0, "lowerdir=/usr,upperdir="+dir+"/upper,workdir="+dir+"/work"); err != nil {
		return fmt.Errorf("overlay over /usr: %w", err)
	}
	if err := os.MkdirAll("/usr/libexec/evoslurm/strategies", 0o755); err != nil { // make install has
		return err
	}
	return unix.Exec(command[0], command, os.Environ())
}

var (
	fenced = regexp.MustCompile("(?ms)^```[a-z]+\n(.*?)^```$")
	named  = regexp.MustCompile("`([a-z_.]+)`")
)

// asWritten returns a shell script of a section of plugins/README.md: every command, and
// every file with the name that stands before it.
func asWritten(t *testing.T, heading string) string {
	t.Helper()
	text := must.Read(t, "../../../plugins/README.md")
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("plugins/README.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	script := strings.Builder{}
	script.WriteString("set -eux\n")
	prose := func(text string) { // indented lines are commands
		for _, line := range strings.Split(text, "\n") {
			if command, ok := strings.CutPrefix(line, "    "); ok {
				script.WriteString(command + "\n")
			}
		}
	}
	for {
		at := fenced.FindStringSubmatchIndex(section)
		if at == nil {
			prose(section)
			return script.String()
		}
		before := section[:at[0]]
		prose(before)
		names := named.FindAllStringSubmatch(before, -1)
		if len(names) == 0 {
			t.Fatalf("a file without a name in %q", heading)
		}
		fmt.Fprintf(&script, "cat > %s <<'END OF FILE'\n%sEND OF FILE\n", names[len(names)-1][1], section[at[2]:at[3]])
		section = section[at[1]:]
	}
}

// release makes of the working tree what a new user gets: a git repository, and a
// module in a folder that serves as a proxy.
func release(t *testing.T, dir string) (repository, proxy string) {
	t.Helper()
	repository, proxy = dir+"/repository", dir+"/proxy"
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	const module, version = "github.com/evoslurm/evoslurm", "v0.1.0"
	versions := filepath.Join(proxy, module, "@v")
	for _, d := range []string{repository, versions} {
		must.OK(t, os.MkdirAll(d, 0o755))
	}
	archive, err := os.Create(versions + "/" + version + ".zip")
	must.OK(t, err)
	defer archive.Close()
	z := zip.NewWriter(archive)
	for _, name := range strings.Split(strings.TrimSuffix(run("../../..", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		text, err := os.ReadFile("../../../" + name)
		if os.IsNotExist(err) {
			continue // deleted, not committed
		}
		must.OK(t, err)
		mode := os.FileMode(0o644)
		if st, err := os.Stat("../../../" + name); err == nil && st.Mode()&0o100 != 0 {
			mode = 0o755
		}
		must.OK(t, os.MkdirAll(filepath.Dir(repository+"/"+name), 0o755))
		must.OK(t, os.WriteFile(repository+"/"+name, text, mode))
		f, err := z.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = f.Write(text)
		}
		must.OK(t, err)
	}
	must.OK(t, z.Close())
	run(repository, "git", "init", "-q")
	run(repository, "git", "add", "--all")
	run(repository, "git", "-c", "user.name=release", "-c", "user.email=release@example.org", "commit", "-q", "-m", version)
	gomod := must.Read(t, repository+"/go.mod")
	for name, text := range map[string]string{"list": version + "\n", version + ".info": `{"Version": "` + version + `", "Time": "2026-01-01T00:00:00Z"}`, version + ".mod": string(gomod)} {
		must.OK(t, os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644))
	}
	return repository, proxy
}

// TestReadmeAsWritten: "Write your own strategy" of plugins/README.md, word by word
// and from an empty folder, ends with that strategy planning on a live cluster.
func TestReadmeAsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	s.stop(syscall.SIGKILL)
	self, err := os.Executable()
	s.must(err)
	for _, d := range []string{"/overlay", "/shims", "/home", "/modules"} {
		s.must(os.Mkdir(s.Dir+d, 0o755))
	}
	s.program = []string{self, inOverlay, s.Dir + "/overlay", bin + "/evoslurmd"} // with the default folder of strategies
	s.start()
	s.eventually("the sidecar serves", func() bool {
		_, err := os.Stat(s.Dir + "/run/api.sock")
		return err == nil
	})
	// What is not on every machine, or not to be touched: sudo, which root need not
	// have, and apt, which is asked for what is there already (.ci/deps).
	for name, text := range map[string]string{
		"sudo": "exec \"$@\"\n",
		"apt":  "test \"$1\" = install && shift && for p; do dpkg-query --show --showformat '${db:Status-Status}\\n' \"$p\" | grep -qx installed || { echo \"$p is not installed\" >&2; exit 1; }; done\n",
	} {
		s.must(os.WriteFile(s.Dir+"/shims/"+name, []byte("#!/bin/sh\n"+text), 0o755))
	}
	out, err := exec.Command("go", "build", "-o", s.Dir+"/shims/", "../../../plugins/cmd/strategytest").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	goenv := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		s.must(err)
		return strings.TrimSpace(string(out))
	}
	repository, proxy := release(t, s.Dir)
	env := append(os.Environ(), s.Env()...)
	env = append(env, "HOME="+s.Dir+"/home", "PATH="+s.Dir+"/shims:"+bin+":"+goenv("GOROOT")+"/bin:/usr/local/bin:/usr/bin:/bin",
		"EVOSLURM_API=unix://"+s.Dir+"/run/api.sock",
		"GOMODCACHE="+s.Dir+"/modules", "GOCACHE="+goenv("GOCACHE"), "GOFLAGS=-trimpath -modcacherw", "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+goenv("GOMODCACHE")+"/cache/download,"+goenv("GOPROXY"),
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=url.file://"+repository+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/evoslurm/evoslurm",
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*")
	for _, c := range []struct{ heading, strategy, set, then string }{
		{"Write your own strategy in Go", "narrow", "widest=8", ""},
		{"Write your own strategy in Python", "widest", "", ""},
		{"Write your own strategy in Python", "asap", "", "evosctl strategy use asap\n"}, // which comes with the SDK
	} {
		t.Run(c.strategy, func(t *testing.T) {
			s.t = t
			empty, err := os.MkdirTemp(s.Dir, "empty-")
			s.must(err)
			script := asWritten(t, c.heading)
			if c.then != "" {
				script = "set -eux\n" + c.then
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // Go may fetch modules from far away
			defer cancel()
			began := time.Now()
			cmd := exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", s.daemon.Process.Pid), "--wd="+empty, "bash", "-c", script)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, script, out)
			}
			t.Logf("as written in %.0f s", time.Since(began).Seconds())
			id := s.submit("--profile=2@5m,3@5m", "--wrap", "sleep 600")
			s.eventually("a job runs by it", func() bool { return s.job(id).State == "running" })
			show := exec.Command(bin+"/evosctl", "strategy", "show", c.strategy)
			show.Env = env
			text, err := show.CombinedOutput()
			for _, want := range []string{c.strategy + " (plugin, version 1)", "State:    in use", "Faults:   0; 0 cycles", c.set} {
				if err != nil || !strings.Contains(string(text), want) {
					t.Errorf("no %q in (%v)\n%s", want, err, text)
				}
			}
			if strings.Contains(string(text), "Plans:    0") {
				t.Errorf("it has planned nothing:\n%s", text)
			}
			if _, err := os.Stat("/usr/libexec/evoslurm/strategies/" + c.strategy); err == nil {
				t.Error("the machine itself was changed")
			}
			_, err = s.Cluster.Run(context.Background(), s.Cluster.Users()[0], "scancel", id)
			s.must(err)
		})
	}
}
