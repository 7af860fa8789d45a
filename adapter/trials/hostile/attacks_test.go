package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// What every script of the attacker's may use: $1 is the victim's evolving job.
const (
	// comments submits running and waiting jobs whose comments are markers that ask for
	// more than any cluster has.
	comments = `
for m in 'p=2147483647@1' 'p=10000000@1' 'p=1@1,2147483647@60' 'p=1-2147483647@10m' 'p=1@1|2147483647@1|9999999@2' \
  'p=1@1;g=2147483647' 'p=9223372036854775807@9223372036854775807' 'p=1@1;s=2147483647@2147483647@2147483647@2147483647@1' 'p=1@9223372036854775807,2@9223372036854775807' \
  'p=1@1m;b=9223372036854775807' 'p=1@1m;x=1e308' 'p=1@1m;t=9223372036854775807' 'p=1@1m;i=2147483647;f=4294967295' 'p=script' 'p=1@1m;c=%'; do
  sbatch -N1 --time=1 --output=/dev/null --comment="evo:v2;$m;;" --wrap 'exec sleep 30' >/dev/null
  sbatch -N1 --time=1 --begin=now+1hour --output=/dev/null --comment="evo:v2;$m;;" --wrap true >/dev/null
done; true`

	// nodeLists holds jobs whose markers name 131,072 nodes 46 times.
	nodeLists = `
list=$(printf 'n[1-131072],%.0s' $(seq 46)); list=${list%,}
for i in $(seq 60); do
  sbatch --hold -N1 --output=/dev/null --comment="evo:v2;p=1@1m;n=$list;;" --wrap true >/dev/null
done; true`

	// longProfiles submits scripts with 100,000 steps.
	longProfiles = `
{ echo '#!/bin/sh'; printf '#EVO --profile=1@1s'; printf ',2@1s,1@1s%.0s' $(seq 50000); echo; echo 'sleep 30'; } >long.$$.sh
for i in 1 2 3; do sbatch -N1 --time=1 --output=/dev/null --comment='evo:v2;script;;' long.$$.sh; done
for i in 1 2 3; do sbatch -N1 --time=1 --output=/dev/null --comment='evo:v2;p=1@1;s=100000@1@1@1@1;;' --wrap 'exec sleep 30'; done
rm -f long.$$.sh; true`

	// ownJob submits an evolving job of the attacker's and sets $own.
	ownJob = `own=$(evosbatch --parsable --output=/dev/null --profile=1@1m,2@1m --wrap 'exec sleep 600')
while [ "$(squeue -h -j $own -o %T)" = PENDING ]; do sleep 0.2; done
`

	greed = ownJob + `
for n in 60000000 2147483647 9223372036854775807 99999999999999999999; do evosctl grow $n --min=1 --job=$own; done
evosctl update $own --profile=2147483647@1s,1@1s
evosctl update $own --profile=1@1s$(printf ',2@1s,1@1s%.0s' $(seq 5000))
true`

	// ownGrowths keeps an evolving job of the attacker's growing and shrinking.
	ownGrowths = `evosbatch --output=/dev/null --drive=companion --profile=1@2s,2@2s,1@2s,2@2s,1@2s,2@2s --wrap 'while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do sleep 2; done' >/dev/null
`

	// forgedNames submits jobs that are named like the sidecar's, and tries the victim's holds.
	forgedNames = `
for s in 2 3 4; do for a in 1 2 3 4; do
  sbatch -N1 --time=1 --begin=now+1hour --output=/dev/null --job-name=evo_${1}_${s}_$a --comment="evo:v2;p=1@1m;;" --wrap true
  sbatch -N1 --time=1 --output=/dev/null --reservation=evo_${1}_${s}_$a --wrap true
  scontrol delete ReservationName=evo_${1}_${s}_$a
  scontrol update ReservationName=evo_${1}_${s}_$a Users+=$(id -un)
done; done >/dev/null 2>&1; true`

	// othersJob does to the victim's job whatever the sidecar's commands offer.
	othersJob = `
for c in next env "grow 1" "shrink 1" "update --profile=1@1s" accept decline "progress 1" cancel-holds; do
  if out=$(timeout 20 evosctl $c --job=$1 2>&1 || timeout 20 evosctl $c $1 2>&1); then
    case "$out" in *EVO_ERROR*) ;; *) echo "evosctl $c did something: $out"; exit 1;; esac
  fi
done; true`

	// rewritten changes the marker of a running evolving job again and again.
	rewritten = ownJob + `
for m in 'p=2147483647@1' 'p=1@1s,8@1h' '' 'script' 'p=1@1m;u=x;s=2@9@9@9@9' 'p=8@10d' 'p=1-8@1m'; do for i in 1 2 3; do
  scontrol update JobId=$own Comment="evo:v2;$m;;"; sleep 0.3
done; done 2>/dev/null; true`

	// names puts separators, escapes and line ends into every text that Slurm keeps.
	names = `
evil=$'x|y\e[31m\e]0;owned\a\nJobId=1 JobState=FAILED 0|1|evo:v2;p=9@9;;\t\xff\xe2\x80\xae'
evosbatch --output=/dev/null --profile=1@1m,2@1m --job-name="$evil" --comment="$evil" --wrap 'exec sleep 60' 
sbatch -N1 --time=1 --output=/dev/null --job-name="$evil" --comment="evo:v2;p=1@1m;c=$evil;;" --wrap 'exec sleep 30'
sbatch -N1 --time=1 --begin=now+1hour --output="/dev/null" --wckey="$evil" --job-name="$evil" --comment="$evil" --wrap true
true`

	// churn submits and cancels evolving jobs without end.
	churn = `
while :; do
  ids=$(for i in 1 2 3; do evosbatch --parsable --output=/dev/null --profile=1@1m,2@1m,1@1m --wrap 'exec sleep 60'; done)
  sleep 0.5; scancel $ids
done 2>/dev/null`

	// manyJobs parks far more evolving jobs than there is room for.
	manyJobs = `
for i in $(seq 60); do
  sbatch -N1 --time=30 --begin=now+1000days --output=/dev/null --comment="evo:v2;p=1@1m,8@1m,1@1m,8@1m,1@1m,8@1m,1@1m,8@1m;;" --wrap 'exec sleep 60' >/dev/null
done; true`

	// hugeScripts submits scripts of some megabytes, full of directives.
	hugeScripts = `
{ echo '#!/bin/sh'; for i in $(seq 20000); do echo "#EVO --profile=1@1s,2@1s --on-grow=$i --comment=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; done; echo 'sleep 30'; } >huge.$$.sh
for i in 1 2 3 4; do sbatch -N1 --time=1 --output=/dev/null --comment='evo:v2;script;;' huge.$$.sh; done
rm -f huge.$$.sh; true`

	// arrays and heterogeneous jobs carry markers, which evosbatch would refuse.
	arrays = `
sbatch --array=0-400 -N1 --time=1 --begin=now+1hour --output=/dev/null --comment='evo:v2;p=1@1m,2@1m;;' --wrap true
sbatch --array=0-3 -N1 --time=1 --output=/dev/null --comment='evo:v2;p=1@1m,2@1m;;' --wrap 'exec sleep 20'
sbatch -N1 --time=1 --comment='evo:v2;p=1@1m,2@1m;;' --output=/dev/null : -N1 --comment='evo:v2;p=2@1m,8@1m;;' --wrap 'exec sleep 20'
true`

	// requeues puts a running evolving job back into the queue again and again.
	requeues = ownJob + `
while :; do scontrol requeue $own; sleep 0.5; scontrol update JobId=$own StartTime=now; sleep 0.5; done 2>/dev/null`

	// borrowed expands the victim's job, which Slurm allows every user, and runs a job in its
	// holds.
	borrowed = `
for i in 1 2 3 4 5; do
  timeout 5 salloc --no-shell -N1 --time=1 --dependency=expand:$1 --job-name=evo_${1}_2_1 --comment=evox:v1
  timeout 5 salloc --no-shell -N1 --time=1 --job-name=evo_${1}_$((i % 4 + 1))_1 --comment=evox:v1
  sleep 1; scancel --user="$(id -un)"
done >/dev/null 2>&1; true`

	// refusedChanges asks for what is refused, over and over.
	refusedChanges = ownJob + `
for i in 1 2 3; do while evosctl grow 1000 --job=$own; [ $? -ne 130 ]; do :; done & done >/dev/null 2>&1; wait`

	// dryRuns has one user's changes planned without end.
	dryRuns = ownJob + `
queued=$(evosbatch --parsable --output=/dev/null --profile=8@1h,1@1h --wrap true)
for i in 1 2 3; do while evosctl update $queued --profile=$i@10m,8@1h,2@10m --dry-run; [ $? -ne 130 ]; do :; done & done >/dev/null 2>&1; wait`

	// hoarding has nearly all nodes held for hours, and asks for far more growths than there are holds.
	hoarding = `
evosbatch --output=/dev/null --profile=1@1m,6@7h --wrap 'exec sleep 300'
for i in 1 2; do evosbatch --output=/dev/null --profile=1@5m$(printf ',2@10s,1@10s%.0s' $(seq 50)) --wrap 'exec sleep 300'; done >/dev/null
sleep 3`

	// waiters calls next from many processes at once.
	waiters = ownJob + `
for i in $(seq 40); do evosctl next --job=$own --from=1 & done >/dev/null 2>&1; wait`
)

// python returns an attack that is a program of the attacker's.
func python(program string) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		_, err := f.python(ctx, program)
		return err
	}
}

// python runs a program of the attacker's and returns what it printed; ADDRESS and SOCKET are
// the sidecar's.
func (f *field) python(ctx context.Context, program string) (string, error) {
	script := fmt.Sprintf("export ADDRESS=%s SOCKET=%s/run/api.sock VICTIM=%d; exec python3 - <<'PY'\n%s\nPY", f.Address, f.Dir, f.victim, program)
	out, err := f.as(ctx, attacker, script)
	if err != nil {
		err = fmt.Errorf("the attack's program: %w\n%s", err, out)
	}
	return out, err
}

const (
	// watch calls found(pid) for every salloc that runs as the attacker, as soon as it does,
	// and says so.
	watch = `
import os, time, signal
def last(): return int(open("/proc/loadavg").read().split()[4])
def watch(found):
    seen, young = last(), {}
    while True:
        now = last()
        young.update((p, time.time()) for p in range(seen + 1, now + 1))
        seen = now
        for p, since in list(young.items()):
            try:
                if open("/proc/%d/comm" % p).read() == "salloc\n" and os.stat("/proc/%d" % p).st_uid == os.getuid():
                    found(p); print("found", p, flush=True)
                elif time.time() - since < 5: continue
            except PermissionError as e: print("denied", e, flush=True)
            except OSError: pass # it has ended
            del young[p]
        time.sleep(0.0005)
`
	// forgedOutput writes the number of the victim's job into every salloc of the attacker's,
	// as if Slurm had granted that one.
	forgedOutput = watch + `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*args):
    r = libc.syscall(*args)
    if r < 0: raise OSError(ctypes.get_errno(), "system call %d" % args[0])
    return r
def found(p):
    os.kill(p, signal.SIGSTOP)
    try:
        pidfd = os.pidfd_open(p)
        stderr = syscall(438, pidfd, 2, 0) # pidfd_getfd
        for i in range(3):
            os.write(stderr, b"salloc: Granted job allocation %s\n" % os.environ["VICTIM"].encode())
        os.close(stderr); os.close(pidfd)
        time.sleep(0.2)
    finally: os.kill(p, signal.SIGCONT)
watch(found)
`
	// stoppedCommands stops every command that the sidecar runs as the attacker, for good.
	stoppedCommands = watch + `watch(lambda p: os.kill(p, signal.SIGSTOP))
`
	dial = `
import os, socket, time, threading
host, port = os.environ["ADDRESS"].rsplit(":", 1)
def tcp():
    s = socket.create_connection((host, int(port)), timeout=5); return s
def unix():
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(os.environ["SOCKET"]); return s
`
	// idle keeps thousands of silent connections.
	idle = dial + `
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
end = time.time() + 60
while time.time() < end:
    for to in (tcp, unix):
        try:
            if len(kept) < 4500: kept.append(to())
        except OSError: time.sleep(0.01)
    if len(kept) >= 4500: time.sleep(1)
`
	// bodies sends large bodies without a credential, from many clients at once.
	bodies = dial + `
def send(to):
    while time.time() < end:
        try:
            s = to()
            s.sendall(b"POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n")
            for i in range(64):
                s.sendall(b"x" * 16384); time.sleep(0.01)
            s.recv(100)
        except OSError: time.sleep(0.05)
end = time.time() + 30
ts = [threading.Thread(target=send, args=(to,), daemon=True) for to in (tcp, unix) for i in range(150)]
[t.start() for t in ts]; [t.join() for t in ts]
`
	// garbage sends invalid requests.
	garbage = dial + `
lines = [b"\x16\x03\x01" + os.urandom(300), b"GET /../../../etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 900000 + b"\r\n\r\n",
  b"GET /v1/jobs/99999999999999999999 HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"GET /v1/events?limit=9223372036854775807&after=-1 HTTP/1.1\r\nHost: x\r\n\r\n",
  b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE " + b"A" * 60000 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 1000]
end = time.time() + 20
while time.time() < end:
    for line in lines:
        for to in (tcp, unix):
            try:
                s = to(); s.sendall(line); s.settimeout(0.2); s.recv(2000)
            except OSError: pass
            finally:
                try: s.close()
                except Exception: pass
`
	// impostor answers on the sidecar's address whatever is asked, for four seconds.
	impostor = `
import os, http.server, socketserver, threading, time
host, port = os.environ["ADDRESS"].rsplit(":", 1)
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = b'{"ready":true,"done":false,"job":%s,"step":2,"steps":4,"drive":"merge","nodes":7,"parts":[{"job":%s,"node_list":["n8\\u001b[31m"],"cpus":[4]}]}' % ((os.environ["VICTIM"].encode(),) * 2)
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_GET = do_POST
    def log_message(self, *a): pass
socketserver.ThreadingTCPServer.allow_reuse_address = True
end = time.time() + 20
while time.time() < end:
    try: s = socketserver.ThreadingTCPServer((host, int(port)), H); break
    except OSError: time.sleep(0.001)
threading.Thread(target=s.serve_forever, daemon=True).start()
time.sleep(4)
`
)

// restarted restarts the sidecar while the attacker waits for its address.
func restarted(ctx context.Context, f *field) error {
	lies := make(chan error, 1)
	go func() { lies <- python(impostor)(ctx, f) }()
	time.Sleep(time.Second) // the impostor tries already
	f.stop(syscall.SIGKILL)
	time.Sleep(time.Second) // and gets the address
	f.start()
	return <-lies
}

// growing runs a program that watches while a job of the attacker's own grows and shrinks.
func growing(program string) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		done := make(chan error, 1)
		go func() {
			out, err := f.python(ctx, program)
			switch {
			case err != nil || strings.Contains(out, "found "):
			case strings.Contains(out, "denied "):
				f.t.Logf("this machine keeps users from their own processes, and so from the attack:\n%s", out)
			default:
				err = errors.New("no salloc of the attacker's was found: nothing was tried")
			}
			done <- err
		}()
		return errors.Join(attackWith(ownGrowths)(ctx, f), <-done)
	}
}

// served reports an error where the victim gets no answer of the sidecar's.
func served(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		done := make(chan error, 1)
		go func() { done <- attack(ctx, f) }()
		time.Sleep(5 * time.Second) // the attack is under way
		out, err := f.as(ctx, victim, `timeout 30 evosqueue --json=evoslurm >/dev/null`)
		if err != nil {
			err = fmt.Errorf("evosqueue of another user: %w\n%s", err, out)
		}
		return errors.Join(err, <-done)
	}
}

// yielding reports an error where a stock job of the victim's does not start, since nodes are held for
// an attacker's job: its budget is an hour, and the hold would delay it by seven.
func yielding(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		err := attack(ctx, f)
		out, e := f.as(context.WithoutCancel(ctx), victim, `timeout 60 srun --quiet --nodes=4 --exclusive --time=8:00:00 true`)
		if e != nil {
			e = fmt.Errorf("a stock job does not start: %w\n%s%s", e, out, f.slurm("scontrol", "show", "reservation"))
		}
		return errors.Join(err, e)
	}
}

// printable reports an error where what the victim sees has control characters in it.
func printable(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		err := attack(ctx, f)
		for _, command := range []string{"evosqueue", "evosqueue --gantt", "evosacct -a", "evosctl events"} {
			out, e := f.as(ctx, victim, command)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w\n%s", command, e, out))
			}
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				err = errors.Join(err, fmt.Errorf("%s prints %q", command, out[i:min(len(out), i+10)]))
			}
		}
		return err
	}
}

var attacks = []attack{
	{name: "comments", short: true, run: attackWith(comments)},
	{name: "node lists", short: true, run: attackWith(nodeLists)},
	{name: "long profiles", short: true, run: served(attackWith(longProfiles))},
	{name: "greed", short: true, run: attackWith(greed)},
	{name: "forged output", short: true, alone: true, run: growing(forgedOutput)},
	{name: "stopped commands", run: growing(stoppedCommands)},
	{name: "forged names", short: true, run: attackWith(forgedNames)},
	{name: "another's job", short: true, run: attackWith(othersJob)},
	{name: "rewritten markers", short: true, run: attackWith(rewritten)},
	{name: "names", short: true, run: printable(attackWith(names))},
	{name: "churn", run: attackWith(churn)},
	{name: "many jobs", run: attackWith(manyJobs)},
	{name: "huge scripts", short: true, run: attackWith(hugeScripts)},
	{name: "arrays", short: true, run: attackWith(arrays)},
	{name: "requeues", run: attackWith(requeues)},
	{name: "borrowed", run: attackWith(borrowed)},
	{name: "hoarding", run: yielding(attackWith(hoarding))},
	{name: "refused changes", run: served(attackWith(refusedChanges))},
	{name: "dry runs", run: served(attackWith(dryRuns))},
	{name: "waiters", run: served(attackWith(waiters))},
	{name: "idle connections", short: true, run: served(python(idle))},
	{name: "bodies", run: served(python(bodies))},
	{name: "garbage", short: true, run: served(python(garbage))},
	{name: "impostor", run: restarted, away: 10 * time.Second},
}
