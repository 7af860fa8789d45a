package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// unitFile is the systemd unit, and rootFile the drop-in that has it run as root.
const (
	unitFile = "../../../contrib/systemd/evoslurmd.service"
	rootFile = "../../../contrib/systemd/root.conf"
)

// capabilities by their names, as far as the unit may come to have them.
var capabilities = map[string]uint{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	"CAP_FOWNER": unix.CAP_FOWNER, "CAP_KILL": unix.CAP_KILL, "CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID,
	"CAP_SYS_NICE": unix.CAP_SYS_NICE, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_SYS_RESOURCE": unix.CAP_SYS_RESOURCE,
}

// unit returns the unit's [Service] section, as root's if account is "".
func unit(account string) (map[string]string, error) {
	u, err := section(unitFile, "[Service]")
	if err != nil || account != "" {
		return u, err
	}
	root, err := section(rootFile, "[Service]")
	maps.Copy(u, root)
	return u, err
}

// section returns a section of a unit; several lines of one directive are joined.
func section(file, wanted string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	settings, section := map[string]string{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "[") {
			section = line
		}
		if name, value, ok := strings.Cut(line, "="); ok && section == wanted && !strings.HasPrefix(line, "#") {
			settings[name] = strings.TrimSpace(settings[name] + " " + value)
		}
	}
	return settings, nil
}

// underTheUnit makes this executable a stand-in for systemd: called with it and an account ("": root), the
// program and its arguments run as the unit says.
const underTheUnit = "__under-the-unit"

func init() {
	if len(os.Args) > 3 && os.Args[1] == underTheUnit {
		runtime.LockOSThread()
		fmt.Fprintln(os.Stderr, "under the unit:", runUnderTheUnit(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
}

// runUnderTheUnit does not return unless it fails. Of the unit it minds what may
// keep a plugin from starting, and can be had without systemd.
func runUnderTheUnit(account string, command []string) error {
	u, err := unit(account)
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if u["PrivateTmp"] == "yes" {
		for _, dir := range []string{"/tmp", "/var/tmp"} {
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
				return fmt.Errorf("mount %s: %w", dir, err)
			}
		}
	}
	if u["ProtectSystem"] == "strict" {
		for _, dir := range []string{"/usr", "/etc"} {
			if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("bind %s: %w", dir, err)
			}
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
				return fmt.Errorf("remount %s: %w", dir, err)
			}
		}
	}
	if u["MemoryDenyWriteExecute"] == "yes" {
		const refuseExecGain = 1
		// Linux 6.3 and newer; systemd has a filter of its own for older ones.
		if err := unix.Prctl(unix.PR_SET_MDWE, refuseExecGain, 0, 0, 0); err != nil {
			fmt.Fprintln(os.Stderr, "this kernel cannot deny executable memory that was writable:", err)
		}
	}
	if mask, err := strconv.ParseUint(u["UMask"], 8, 32); err == nil {
		unix.Umask(int(mask))
	}
	bounding, ambient := capsOf(u["CapabilityBoundingSet"]), capsOf(u["AmbientCapabilities"])
	args := []string{"setpriv", "--bounding-set=" + bounding, "--inh-caps=" + ambient, "--ambient-caps=" + ambient, "--clear-groups"}
	if account != "" {
		args = append(args, "--reuid="+account, "--regid="+account)
	}
	if u["NoNewPrivileges"] == "yes" {
		args = append(args, "--no-new-privs")
	}
	var env []string // systemd gives little
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name == "PATH" || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "EVOSLURM_") {
			env = append(env, v)
		}
	}
	path, err := exec.LookPath("setpriv")
	if err != nil {
		return err
	}
	return unix.Exec(path, append(append(args, "--"), command...), env)
}

// capsOf returns a list of capabilities as setpriv has it.
func capsOf(list string) string {
	caps := "-all"
	for _, name := range strings.Fields(list) {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	return caps
}

// seenByTheUnit has temporary files made where a sidecar with a private /tmp sees them.
func seenByTheUnit(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "evo-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o755))
	t.Setenv("TMPDIR", dir)
}

// TestUnderTheUnitAsAccount: as the packages have it, the sidecar has an account of its own and one capability, and
// drives jobs in all modes.
func TestUnderTheUnitAsAccount(t *testing.T) {
	if u, err := unit("evoslurm"); err != nil || u["User"] != "evoslurm" || u["CapabilityBoundingSet"] != "CAP_NET_BIND_SERVICE" {
		t.Fatalf("this test is of another unit than %v (%v)", u, err)
	}
	seenByTheUnit(t)
	operator := account(t, "backup")
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, operator)
	s.stop(syscall.SIGKILL)
	_, err := s.Cluster.Run(t.Context(), slurmtest.Root, "sacctmgr", "-i", "modify", "user", operator.Name, "set", "adminlevel=Operator")
	s.must(err)
	s.must(exec.Command("cp", bin+"/evoslurmd", s.Dir).Run())
	self, err := os.Executable()
	s.must(err)
	s.account, s.program = nil, []string{self, underTheUnit, operator.Name, s.Dir + "/evoslurmd"}
	s.start()
	evolving := s.script("evolve.sh", evolve)
	for _, drive := range []string{"merge", "companion"} {
		if got := messages(s.output(s.submit("--drive="+drive, evolving))); !slices.Equal(got, evolved) {
			t.Errorf("%s: the job printed\n%s\nwant\n%s", drive, strings.Join(got, "\n"), strings.Join(evolved, "\n"))
		}
	}
	const bind = 1 << unix.CAP_NET_BIND_SERVICE
	if got, uid := status(t, s.daemon.Process.Pid), fmt.Sprint(operator.UID); got["CapBnd"] != fmt.Sprintf("%016x", bind) || got["CapEff"] != got["CapBnd"] || !strings.HasPrefix(got["Uid"], uid+"\t") || got["NoNewPrivs"] != "1" {
		t.Errorf("the sidecar is uid %s with the capabilities %s of %s", got["Uid"], got["CapEff"], got["CapBnd"])
	}
	s.stop(syscall.SIGTERM)
}

// TestUnderTheUnit: with exactly the capabilities of the systemd unit as root's, its umask, a
// private /tmp and no new privileges, the sidecar drives jobs as their users, and
// starts, limits and ends plugins as the user of plugins.
func TestUnderTheUnit(t *testing.T) {
	u, err := unit("")
	must.OK(t, err)
	want := uint64(0)
	for _, name := range strings.Fields(u["CapabilityBoundingSet"]) {
		bit, ok := capabilities[name]
		if !ok {
			t.Fatalf("the unit has %s, which this test does not know", name)
		}
		want |= 1 << bit
	}
	if want == 0 || u["NoNewPrivileges"] != "yes" || u["PrivateTmp"] != "yes" || u["UMask"] == "" || u["MemoryDenyWriteExecute"] != "yes" || u["User"] != "root" {
		t.Fatalf("this test is of another unit than %v", u)
	}
	seenByTheUnit(t)
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	s.stop(syscall.SIGKILL)
	folder := s.Dir + "/strategies"
	s.must(os.Mkdir(folder, 0o755))
	for _, args := range [][]string{
		{"go", "build", "-o", folder, "../../../plugins/cmd/klein"},
		{"cp", "-r", "../../../plugins/python/asap", "../../../plugins/python/evostrategy", folder},
		{"cp", bin + "/evoslurmd", s.Dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	file := s.Dir + "/evoslurm.yaml"
	text, err := os.ReadFile(file)
	s.must(err)
	s.must(os.WriteFile(file, append(text, "strategies: {dir: "+folder+"}\n"...), 0o644))
	self, err := os.Executable()
	s.must(err)
	s.program = []string{self, underTheUnit, "", s.Dir + "/evoslurmd"}
	s.start()
	s.eventually("the sidecar serves", func() bool {
		_, err := os.Stat(s.Dir + "/run/api.sock")
		return err == nil
	})
	if got := status(t, s.daemon.Process.Pid); got["CapBnd"] != fmt.Sprintf("%016x", want) || got["CapPrm"] != got["CapBnd"] || got["NoNewPrivs"] != "1" {
		t.Fatalf("the sidecar has the capabilities %s of %s and NoNewPrivs %s, want %016x of %[4]016x and 1", got["CapPrm"], got["CapBnd"], got["NoNewPrivs"], want)
	}
	root := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(bin+"/evosctl", append([]string{"strategy"}, args...)...)
		cmd.Env = append(os.Environ(), "EVOSLURM_CONFIG="+file, "EVOSLURM_API=unix://"+s.Dir+"/run/api.sock")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("evosctl strategy %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	evolving := s.script("evolve.sh", evolve)
	for i, name := range []string{"klein", "asap"} {
		if out := root("use", name); !strings.Contains(out, name+" (plugin") {
			t.Errorf("use %s:\n%s", name, out)
		}
		id := s.submit("--drive="+[]string{"merge", "companion"}[i], evolving)
		if got := messages(s.output(id)); !slices.Equal(got, evolved) {
			t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
		}
		if out := root("show", name); !strings.Contains(out, "Faults:   0; 0 cycles") {
			t.Errorf("show %s:\n%s", name, out)
		}
		tree := slices.DeleteFunc(below(s.daemon.Process.Pid), func(pid int) bool { // commands of Slurm come and go
			command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return err != nil || !strings.Contains(string(command), "/"+name)
		})
		if len(tree) == 0 {
			t.Fatal("no plugin runs")
		}
		plugin := tree[len(tree)-1]
		got := status(t, plugin)
		nobody := "65534\t65534\t65534\t65534"
		if got["Uid"] != nobody || got["Gid"] != nobody || strings.TrimSpace(got["Groups"]) != "" || strings.Trim(got["CapEff"]+got["CapPrm"], "0") != "" || got["NoNewPrivs"] != "1" {
			t.Errorf("%s runs as uids %s, gids %s, groups %s with capabilities %s", name, got["Uid"], got["Gid"], got["Groups"], got["CapPrm"])
		}
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", plugin))
		s.must(err)
		if !regexp.MustCompile(`(?m)^Max data size +1073741824 +1073741824 `).Match(limits) { // soft and hard
			t.Errorf("%s has not 1 GiB of data for good:\n%s", name, limits)
		}
		sockets := listening(t, plugin)
		if len(sockets) == 0 {
			t.Errorf("%s listens nowhere", name)
		}
		for _, path := range sockets {
			if _, err := os.Lstat(path); err == nil && strings.HasPrefix(path, "/tmp/") {
				t.Errorf("its socket is in everybody's /tmp: %s", path)
			}
		}
	}
	tree := below(s.daemon.Process.Pid)
	s.stop(syscall.SIGKILL)
	s.eventually("the plugin is gone after kill -9", func() bool {
		return !slices.ContainsFunc(tree, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
}

// listening returns the paths of the Unix sockets on which a process listens.
func listening(t *testing.T, pid int) (paths []string) {
	t.Helper()
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	must.OK(t, err)
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must.OK(t, err)
	for _, file := range files {
		target, _ := os.Readlink(file) // it may be closed by now
		for line := range strings.Lines(string(all)) {
			// Num RefCount Protocol Flags Type St Inode Path
			if w := strings.Fields(line); len(w) == 8 && w[3] == "00010000" && target == "socket:["+w[6]+"]" {
				paths = append(paths, w[7])
			}
		}
	}
	return paths
}

// status is /proc/PID/status.
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must.OK(t, err)
	fields := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}
