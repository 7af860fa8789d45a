package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestTutorial: every command of the tutorial, as it is typed and by an ordinary user, shows
// what the tutorial says, and the second job runs after the last; the command's exit status is
// evosdemo's, and nothing is left.
func TestTutorial(t *testing.T) {
	temp := shortTemp(t)
	const mark = "== end of lesson =="
	script := ""
	for i, l := range Lessons {
		if i == 2 { // who types is slower
			script += "for i in $(seq 600); do evosctl events 2 2>/dev/null | grep -q adopted && break; sleep 0.2; done\n"
		}
		script += l.Command + "\necho '" + mark + "'\n"
	}
	script += `id -u
for i in $(seq 600); do [ "$(evosqueue -h -j 2 -o %t)" = R ] && break; sleep 0.2; done
evosqueue -h -j 2 -o %t
command -v evostop evolaunch | wc -l
exit 7
`
	cmd := exec.CommandContext(t.Context(), bin+"/evosdemo", "shell", "--", "bash", "-c", script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("ended with %v, want the command's status 7\n%s", err, stderr.String())
	}
	parts := strings.Split(stdout.String(), mark+"\n")
	if len(parts) != len(Lessons)+1 {
		t.Fatalf("%d parts of %d\n%s\n%s", len(parts), len(Lessons)+1, stdout.String(), stderr.String())
	}
	for i, l := range Lessons {
		if !regexp.MustCompile(l.Shows).MatchString(parts[i]) {
			t.Errorf("%s shows\n%s\nwant %s", l.Command, parts[i], l.Shows)
		}
		if !strings.Contains(Tutorial(), "\n       "+l.Command+"\n") {
			t.Errorf("%s is not in the tutorial", l.Command)
		}
	}
	uid, state, _ := strings.Cut(strings.TrimSpace(parts[len(Lessons)]), "\n")
	if uid == "0" || state != "R\n2" {
		t.Errorf("as user %s the second job is %q, want R; and two further commands", uid, state)
	}
	empty(t, temp)
}

// TestShellOnATerminal: an interactive shell has the terminal, ^C is for what runs in it, and
// exit takes everything down.
func TestShellOnATerminal(t *testing.T) {
	temp := shortTemp(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin+"/evosdemo", "shell", "--nodes=2", "--drive=companion")
	cmd.Env = append(os.Environ(), "TERM=dumb")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	seen, whole := "", ""
	chunks := make(chan string)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 4096)
			n, err := terminal.Read(b)
			if err != nil {
				return
			}
			chunks <- string(b[:n])
		}
	}()
	await := func(want, again string) { // again: what is typed till it is there
		t.Helper()
		for !strings.Contains(seen, want) {
			select {
			case text, more := <-chunks:
				if !more {
					t.Fatalf("ended before %q\n%s", want, seen)
				}
				seen += text
				whole += text
			case <-time.After(2 * time.Second):
				fmt.Fprint(terminal, again)
			}
		}
		_, seen, _ = strings.Cut(seen, want)
	}
	await("2 nodes", "")
	await("The page, by `evosctl web`: ", "")
	await("\r\n", "") // with all of the address before it
	looked(t, whole, "The page, by `evosctl web`: ")
	await("evoslurm ", "")
	fmt.Fprint(terminal, "sinfo -h -o nodes=%D\n")
	await("nodes=2\r\n", "")
	// A process of its own says that it has the terminal: ^C between a builtin's output and the
	// next process would be for the shell itself, which may take it for the end of its input.
	fmt.Fprint(terminal, "sh -c \"echo a''way; sleep 600\"\n")
	await("away\r\n", "")
	fmt.Fprint(terminal, "\x03")
	await("evoslurm ", "\x03")
	fmt.Fprint(terminal, "echo still'' here\n") // the terminal may drop it with the interrupt
	await("still here", "echo still'' here\n")
	fmt.Fprint(terminal, "exit 3\n")
	await("Taking everything down", "")
	for range chunks {
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	empty(t, temp)
}

// looked looks at the page whose address was printed after a text.
func looked(t *testing.T, printed, after string) {
	t.Helper()
	_, address, _ := strings.Cut(printed, after)
	address, _, _ = strings.Cut(address, "\r\n")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Jar: jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "2 nodes: ") {
		t.Errorf("%s: %s %v\n%s", address, res.Status, err, body)
	}
}

func TestFindSite(t *testing.T) {
	for name, want := range map[string]string{"archer2": "EPCC ARCHER2", "Linear": "linear", "deepops": "NVIDIA DeepOps"} {
		if s, err := findSite(name); err != nil || s.Name != want {
			t.Errorf("%s: %q %v, want %q", name, s.Name, err, want)
		}
	}
	for _, name := range []string{"nowhere", "limited"} { // none, several
		if _, err := findSite(name); err == nil || !strings.Contains(err.Error(), "EPCC ARCHER2") {
			t.Errorf("%s: %v, want the names that there are", name, err)
		}
	}
}

// TestGiveLibrary: who plays in a tree of sources has the Python library.
func TestGiveLibrary(t *testing.T) {
	for bin, want := range map[string]string{"../../../bin": "__init__.py", t.TempDir(): ""} {
		l := &lab{dir: t.TempDir()}
		if err := errors.Join(os.Mkdir(l.path("bin"), 0o755), l.giveLibrary(bin)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(l.path("python", "evoslurm", want)); (err == nil) != (want != "") {
			t.Errorf("%s: %v", bin, err)
		}
	}
}
