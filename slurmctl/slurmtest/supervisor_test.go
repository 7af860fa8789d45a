package slurmtest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func uid(u User) string { return strconv.FormatUint(uint64(u.UID), 10) }

// processesOf finds, independently of the package, the processes related to a folder: by command
// line, environment, working directory, or open file.
func processesOf(dir string) map[int]string {
	found := map[int]string{}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if pid == os.Getpid() || isZombie(pid) {
			continue
		}
		cmdline, _ := os.ReadFile(proc + "/cmdline")
		environ, _ := os.ReadFile(proc + "/environ")
		links, _ := filepath.Glob(proc + "/fd/*")
		text := string(cmdline) + "\x00" + string(environ)
		for _, link := range append(links, proc+"/cwd") {
			target, _ := os.Readlink(link)
			text += "\x00" + target
		}
		if strings.Contains(text, dir) {
			found[pid] = strings.ReplaceAll(string(cmdline), "\x00", " ")
		}
	}
	return found
}

// checkGone waits until the cluster's processes and folder are gone.
func checkGone(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the cluster is gone", func() bool {
		left := processesOf(dir)
		_, err := os.Lstat(dir)
		return len(left) == 0 && os.IsNotExist(err)
	})
}

// startChild runs one of the children and returns the first line that it prints.
func startChild(t *testing.T, name string) (cmd *exec.Cmd, line string, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("child %s: %v: %s", name, err, stderr)
	}
	return cmd, strings.TrimSpace(line), stderr
}

func TestPanicLeavesNothing(t *testing.T) {
	cmd, dir, stderr := startChild(t, "panic")
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "panic:") {
		t.Fatalf("the child did not panic: %v: %s", err, stderr)
	}
	checkGone(t, dir)
}

// TestKillLeavesNothing kills one of two processes, each with a cluster.
func TestKillLeavesNothing(t *testing.T) {
	killed, dir, _ := startChild(t, "sleep")
	kept, keptDir, _ := startChild(t, "sleep")
	for _, d := range []string{dir, keptDir} {
		if n := len(processesOf(d)); n < 8 {
			t.Fatalf("only %d processes found before the kill", n)
		}
	}
	for _, kill := range []struct {
		cmd *exec.Cmd
		dir string
	}{{killed, dir}, {kept, keptDir}} {
		if kill.cmd == kept {
			squeue := exec.CommandContext(t.Context(), "squeue", "-h")
			squeue.Env = []string{"SLURM_CONF=" + keptDir + "/slurm.conf"}
			if out, err := squeue.CombinedOutput(); err != nil || lines(string(out)) != 3 {
				t.Errorf("the other cluster's jobs are: %v: %s", err, out)
			}
		}
		must.OK(t, kill.cmd.Process.Kill())
		kill.cmd.Wait()
		checkGone(t, kill.dir)
	}
}

// TestSupervisorKilled checks that even a killed supervisor leaves no daemon, although job
// processes may then stay.
func TestSupervisorKilled(t *testing.T) {
	c := Start(t, Options{Nodes: 2, Accounting: true})
	must.OK(t, c.sup.cmd.Process.Kill())
	eventually(t, "the daemons are gone", func() bool { return len(processesOf(c.Dir())) == 0 })
	if err := c.RestartController(t.Context()); err == nil || !strings.Contains(err.Error(), "supervisor is gone") {
		t.Errorf("RestartController: %v", err)
	}
	if err := c.Stop(t.Context()); err == nil {
		t.Error("Stop knows nothing of it")
	}
	c.stopped = true
	if err := os.RemoveAll(c.Dir()); err != nil {
		t.Error(err)
	}
}

func TestPortRangesAreApart(t *testing.T) {
	taken := map[int]bool{}
	for range 20 {
		p, err := reservePorts(20)
		must.OK(t, err)
		defer p.release()
		for port := p.base; port < p.base+20; port++ {
			if taken[port] {
				t.Fatalf("port %d is given twice", port)
			}
			taken[port] = true
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.OK(t, err)
	l.Close()
	p, err := reservePorts(1)
	must.OK(t, err)
	p.release()
	slot := (p.base - firstPort) / slotPorts
	if again := tryPorts(slot, 1, 1); again == nil {
		t.Fatalf("the released port %d is not free", p.base)
	} else {
		again.release()
	}
	if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.base)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again := tryPorts(slot, 1, 1); again != nil {
		t.Errorf("port %d, on which somebody listens, is given away", p.base)
	}
	if _, err := reservePorts(100000); err == nil {
		t.Error("100000 ports are given away")
	}
}

// unprivileged returns the child that boots a cluster without root and runs jobs.
func unprivileged() error {
	c, err := bootWithJobs()
	if err != nil {
		return err
	}
	if users := c.Users(); len(users) != 1 || int(users[0].UID) != os.Getuid() {
		return fmt.Errorf("users are %v, want only %d", users, os.Getuid())
	}
	ctx, cancel := contextWithTimeout()
	defer cancel()
	if _, err := c.Run(ctx, Root, "scancel", "--me"); err != nil {
		return err
	}
	if err := c.WaitIdle(ctx); err != nil {
		return err
	}
	out, err := c.Run(ctx, c.Users()[0], "srun", "-N2", "id", "-u")
	if want := strings.Repeat(uid(c.Users()[0])+"\n", 2); err != nil || out != want {
		return fmt.Errorf("srun: %q, %w; want %q", out, err, want)
	}
	if _, err := c.Run(ctx, Root, "scontrol", "create", "reservation", "StartTime=now+1hour", "Duration=1", "NodeCnt=1", "Users=root"); err != nil {
		return fmt.Errorf("the one user is no administrator: %w", err)
	}
	return c.Stop(ctx)
}

func TestUnprivileged(t *testing.T) {
	dir, err := os.MkdirTemp("", "slurmtest-bin-") // a folder that other users can reach
	must.OK(t, err)
	defer os.RemoveAll(dir)
	must.OK(t, os.Chmod(dir, 0o755))
	must.OK(t, copyFile(dir+"/test", "/proc/self/exe"))
	must.OK(t, os.Chmod(dir+"/test", 0o755))
	cmd := exec.CommandContext(t.Context(), dir+"/test")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childEnv+"=unprivileged")
	if os.Geteuid() == 0 {
		users, err := findUsers()
		must.OK(t, err)
		u := users[0]
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkGone(t, strings.TrimSpace(string(out)))
}

// TestLastWords checks that the supervisor's last reply counts, although it has ended when the caller looks.
func TestLastWords(t *testing.T) {
	s := &supervision{gone: make(chan struct{})}
	close(s.gone)
	for range 100 {
		reply := make(chan message, 1)
		reply <- message{ID: 1}
		if m, err := s.await(t.Context(), reply); err != nil || m.ID != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
	}
}
