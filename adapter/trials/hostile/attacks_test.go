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

// Every script must say that it attacked, by tried: one that says nothing has tried nothing, and
// is an error. $1 is the victim's evolving job, $2 the sidecar's socket.
const (
	// prelude holds functions for every script.
	prelude = `
tried() { echo "tried $*"; }
# known waits until the sidecar shows a job: it has read the job's marker.
known() { until evosqueue -t all --json=evoslurm | grep -q "\"id\": $1,$"; do sleep 0.3; done; tried "job $1 is known to the sidecar"; }
raw() { curl -s --max-time 20 --unix-socket $socket --data "$2" http://sidecar/v1/jobs/$1; }
socket=$2
`

	// comments submits running and waiting jobs whose comments are markers that ask for
	// more than any cluster has.
	comments = `
for m in 'p=2147483647@1' 'p=10000000@1' 'p=1@1,2147483647@60' 'p=1-2147483647@10m' 'p=1@1|2147483647@1|9999999@2' \
  'p=1@1;g=2147483647' 'p=9223372036854775807@9223372036854775807' 'p=1@1;s=2147483647@2147483647@2147483647@2147483647@1' 'p=1@9223372036854775807,2@9223372036854775807' \
  'p=1@1m;b=9223372036854775807' 'p=1@1m;x=1e308' 'p=1@1m;t=9223372036854775807' 'p=1@1m;i=2147483647;f=4294967295' 'p=script' 'p=1@1m;c=%'; do
  sbatch -N1 --time=1 --output=/dev/null --comment="evo:v2;$m;;" --wrap 'exec sleep 30' >/dev/null || exit
  last=$(sbatch --parsable -N1 --time=1 --begin=now+1hour --output=/dev/null --comment="evo:v2;$m;;" --wrap true) || exit
done; known $last`

	// nodeLists holds jobs whose markers name 131,072 nodes 46 times, or once, which is as many as
	// a list may have.
	nodeLists = `
most='n[1-131072]'; list=$(printf "$most,%.0s" $(seq 46)); list=${list%,}
for i in $(seq 30); do for n in $list $most; do
  last=$(sbatch --parsable --hold -N1 --output=/dev/null --comment="evo:v2;p=1@1m;n=$n;;" --wrap true) || exit
done; done; known $last`

	// longProfiles submits scripts with more steps than a profile may have, and many with as
	// many as a job may have.
	longProfiles = `
submit() { # COUNT, twice that many steps and one more, and further options
  { echo '#!/bin/sh'; printf '#EVO --profile=1@1s'; printf ',2@1s,1@1s%.0s' $(seq $1); echo; echo 'sleep 30'; } >long.$$.sh
  last=$(sbatch --parsable -N1 --output=/dev/null --comment='evo:v2;script;;' $2 long.$$.sh)
}
for n in 50000 49000 1000; do submit $n --time=1 || exit; done
sbatch -N1 --time=1 --output=/dev/null --comment='evo:v2;p=1@1;s=100000@1@1@1@1;;' --wrap 'exec sleep 30' || exit
for i in $(seq 6); do submit 999 '--time=40 --begin=now+1000days' || exit; done
rm -f long.$$.sh; known $last`

	// chains holds 300 first jobs of chains, with nearly as many steps as a job may have, but without any links.
	chains = `
{ echo '#!/bin/sh'; printf '#EVO --profile=1@1s'; printf ',2@1s,1@1s%.0s' $(seq 950); echo; echo 'sleep 30'; } >chains.$$.sh
submit() { for i in $(seq $1); do last=$(sbatch --parsable --hold -N1 --time=40 --output=/dev/null --comment='evo:v2;script;d=chain;i=1;;' chains.$$.sh) || exit; done; }
submit 100; last=$(sbatch --parsable --hold -N1 --output=/dev/null --comment='evo:v2;p=99@1m;;' --wrap true) || exit # refused, and so shown
known $last; submit 200; rm -f chains.$$.sh`

	// ownJob submits an evolving job of the attacker's and sets $own.
	ownJob = `own=$(evosbatch --parsable --output=/dev/null --profile=${profile:-1@1m,2@1m} --wrap 'exec sleep 600')
runs() { while [ "$(squeue -h -j $own -o %T)" != RUNNING ]; do sleep 0.2; done; }
runs
`

	// greed asks for numbers beyond any cluster by the command, and without it, which checks less.
	greed = ownJob + `
for n in 60000000 2147483647 9223372036854775807 99999999999999999999; do evosctl grow $n --min=1 --job=$own; done
evosctl update $own --profile=2147483647@1s,1@1s
long=1@1s$(printf ',2@1s,1@1s%.0s' $(seq 1200))
n=0
for change in '"update":{"profile":"'$long'"}' '"update":{"profile":"2147483647@1s,1@1s"}' '"update":{"current":9223372036854775807}' '"grow":{"nodes":9223372036854775807}' \
  '"grow":{"nodes":1,"for":9223372036854775807,"wait":9223372036854775807}' '"shrink":{"nodes":9223372036854775807}'; do
  answer=$(raw $own/change '{"id":"'$((++n))'",'"$change"'}')
  case "$answer" in *'"error"'*|*'"accepted":false'*) tried ${change:0:60};; *) echo "taken: ${change:0:60}: $answer"; exit 1;; esac
done`

	// ownGrowths keeps an evolving job of the attacker's growing and shrinking.
	ownGrowths = `evosbatch --output=/dev/null --drive=companion --profile=1@2s,2@2s,1@2s,2@2s,1@2s,2@2s --wrap 'while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do sleep 2; done' >/dev/null || exit
tried
`

	// forgedNames has jobs that are named like all that the sidecar may name for the victim, with
	// the mark of an expander and without it, and tries the victim's holds.
	forgedNames = `
for s in 2 3 4; do for a in $(seq 8); do
  sbatch -N1 --time=1 --begin=now+1hour --output=/dev/null --job-name=evo_${1}_${s}_$a --comment=evox:v1 --wrap true || exit
  sbatch -N1 --time=1 --begin=now+1hour --output=/dev/null --job-name=evo_${1}_${s}_$a --wrap true || exit
done; done >/dev/null
sbatch -N1 --time=1 --begin=now+1hour --output=/dev/null --job-name=evo_${1}_2_1 --comment="evo:v2;p=1@1m;;" --wrap true
while :; do
  for hold in $(scontrol --oneliner show reservation | grep -o "^ReservationName=evo_${1}_[0-9_]*"); do
    for theft in "sbatch -N1 --time=1 --output=/dev/null --reservation=${hold#*=} --wrap=true" "scontrol delete $hold" "scontrol update $hold Users+=$(id -un)"; do
      if said=$($theft 2>&1); then echo "$theft: $said"; exit 1; fi
      case "$said" in *"is invalid"*) ;; *) tried "$theft";; esac
    done
  done; sleep 0.3
done`

	// othersJob does to the victim's job whatever the sidecar's commands offer.
	othersJob = `
for c in "next --job=$1" "grow 1 --job=$1" "shrink 1 --job=$1" "update $1 --profile=1@1s" "progress 0.5 --job=$1" "cancel-holds $1"; do
  if out=$(timeout 20 evosctl $c 2>&1); then echo "evosctl $c did something: $out"; exit 1; fi
  case "$out" in *"belongs to uid"*|*"by operators"*) tried "$c";; *) echo "evosctl $c was refused for another reason: $out"; exit 1;; esac
done
for c in "next {\"from\":1}" "change {\"id\":\"1\",\"grow\":{\"nodes\":1}}" "change {\"id\":\"2\",\"shrink\":{\"nodes\":1}}" "change {\"id\":\"3\",\"update\":{\"profile\":\"1@1s\"}}" \
  "offer {}" "answer {\"offer\":1,\"accept\":1}" "answer {\"offer\":1}" "progress {\"fraction\":0.5}" "cancel-holds {}"; do
  out=$(raw "$1/${c%% *}" "${c#* }")
  case "$out" in *"belongs to uid"*|*"by operators"*) tried "$c";; *) echo "$c is answered: $out"; exit 1;; esac
done`

	// rewritten changes the marker of a running evolving job again and again.
	rewritten = ownJob + `
for m in 'p=2147483647@1' 'p=1@1s,8@1h' '' 'script' 'p=1@1m;u=x;s=2@9@9@9@9' 'p=8@10d' 'p=1-8@1m'; do for i in 1 2 3; do
  scontrol update JobId=$own Comment="evo:v2;$m;;" || exit; sleep 0.3
done; done
has=$(evosqueue -h -j $own -o '%{profile}')
[ "$has" = 1@1m,2@1m ] || { echo "the job's profile has become $has"; exit 1; }
tried`

	// names puts separators, escapes and line ends into every text that Slurm keeps.
	names = `
evil=$'x|y\e[31m\e]0;owned\a\nJobId=1 JobState=FAILED 0|1|evo:v2;p=9@9;;\t\xff\xe2\x80\xae'
evolving=$(evosbatch --parsable --output=/dev/null --profile=1@1m,2@1m --job-name="$evil" --comment="$evil" --wrap 'exec sleep 60') || exit
refused=$(sbatch --parsable -N1 --time=1 --output=/dev/null --job-name="$evil" --comment="evo:v2;p=1@1m;c=$evil;;" --wrap 'exec sleep 30') || exit
sbatch -N1 --time=1 --begin=now+1hour --output="/dev/null" --wckey="$evil" --job-name="$evil" --comment="$evil" --wrap true || exit
squeue -h -j $evolving -o %j | grep -q $'\e' || { echo "Slurm has not kept the name"; exit 1; }
known $evolving; known $refused`

	// churn submits and cancels evolving jobs without end.
	churn = `
while :; do
  ids=$(for i in 1 2 3; do evosbatch --parsable --output=/dev/null --profile=1@1m,2@1m,1@1m --wrap 'exec sleep 60'; done)
  sleep 0.5; scancel $ids && tried $ids
done 2>/dev/null`

	// manyJobs parks far more evolving jobs than there is room for.
	manyJobs = `
for i in $(seq 60); do
  last=$(sbatch --parsable -N1 --time=30 --begin=now+1000days --output=/dev/null --comment="evo:v2;p=1@1m,8@1m,1@1m,8@1m,1@1m,8@1m,1@1m,8@1m;;" --wrap 'exec sleep 60') || exit
done; known $last`

	// hugeScripts submits 40 scripts of 3 MB, full of directives, which are wrong at the
	// end of every second one.
	hugeScripts = `
for end in '' '#EVO --nonsense=1'; do
  { echo '#!/bin/sh'; seq -f '#EVO --profile=1@1s,2@1s --on-grow=%.0f-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' 43000; echo "$end"; echo 'sleep 30'; } >huge.$$.sh
  for i in $(seq 20); do last=$(sbatch --parsable -N1 --time=1 --output=/dev/null --comment='evo:v2;script;;' huge.$$.sh) || exit; done
done
rm -f huge.$$.sh; known $last`

	// arrays have many tasks, and heterogeneous jobs carry markers, which evosbatch would refuse.
	arrays = `
sbatch --array=0-4000 -N1 --time=1 --begin=now+1hour --job-name=task --output=/dev/null --comment='evo:v2;p=1@1m,2@1m;;' --wrap true || exit
sbatch --array=0-3 -N1 --time=1 --job-name=task --output=/dev/null --comment='evo:v2;p=1@1m,2@1m;;' --wrap 'exec sleep 20' || exit
sbatch -N1 --time=1 --job-name=part --comment='evo:v2;p=1@1m,2@1m;;' --output=/dev/null : -N1 --job-name=part --comment='evo:v2;p=2@1m,8@1m;;' --wrap 'exec sleep 20' || exit
tried`

	// requeues puts a running evolving job back into the queue again and again.
	requeues = ownJob + `
while :; do sleep 1; scontrol requeue $own && tried; sleep 1; scontrol update JobId=$own StartTime=now; runs; tried "it ran again"; done 2>/dev/null`

	// borrowed expands the victim's job, which Slurm allows every user, by jobs that are named like
	// the sidecar's, and runs further ones of these names.
	borrowed = `
for i in $(seq 15); do
  name=evo_${1}_$((i % 2 * 2 + 2))_$((i % 5 + 1))
  timeout 5 salloc --no-shell -N1 --time=1 --dependency=expand:$1 --job-name=$name --comment=evox:v1 2>/dev/null && tried $name
  timeout 5 salloc --no-shell -N1 --time=1 --job-name=$name --comment=evox:v1 2>/dev/null
  sleep 1; scancel --user="$(id -un)"
done; true`

	// refusedChanges asks for what is refused, over and over.
	refusedChanges = ownJob + `
for i in 1 2 3; do while :; do evosctl grow 1000 --job=$own 2>&1 | grep -q 'refused: ' && tried; done & done; wait`

	// dryRuns has one user's changes planned without end.
	dryRuns = `
queued=$(evosbatch --parsable --output=/dev/null --profile=8@1h,1@1h --wrap true) || exit
known $queued >/dev/null
for i in 1 2 3; do while :; do evosctl update $queued --profile=$i@10m,8@1h,2@10m --dry-run && tried; done & done 2>/dev/null; wait`

	// hoarding has nearly all nodes held for hours, and asks for far more growths than there are holds.
	hoarding = `
first=$(evosbatch --parsable --output=/dev/null --profile=1@1m,6@7h --wrap 'exec sleep 300') || exit
for i in 1 2; do evosbatch --output=/dev/null --profile=1@5m$(printf ',2@10s,1@10s%.0s' $(seq 50)) --wrap 'exec sleep 300' || exit; done >/dev/null
until scontrol --oneliner show reservation | grep -q "^ReservationName=evo_${first}_2_.* NodeCnt=5 "; do sleep 0.2; done
tried "five nodes are held"`

	// waiters calls next from many processes at once: the next step must wait for the victim's end.
	waiters = `profile=1@1m,6@1m; ` + ownJob + `
for i in $(seq 40); do evosctl next --job=$own --from=1 & done >/dev/null 2>&1
sleep 4; n=$(jobs -pr | wc -l)
[ $n -ge 30 ] && tried "$n wait"; wait`
)

// python returns an attack that is a program of the attacker's. It must say "tried", as a script.
func python(program string) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		out, err := f.python(ctx, program)
		return errors.Join(err, tried(out))
	}
}

// tried returns an error where a script or program does not say that it tried anything.
func tried(out string) error {
	if strings.HasPrefix(out, "tried") || strings.Contains(out, "\ntried") {
		return nil
	}
	return fmt.Errorf("nothing was tried; the attack printed\n%s", out[:min(len(out), 2000)])
}

// python runs a program of the attacker's and returns what it printed; ADDRESS and SOCKET are
// the sidecar's.
func (f *field) python(ctx context.Context, program string) (string, error) {
	script := fmt.Sprintf("export ADDRESS=%s SOCKET=%s/run/api.sock VICTIM=%d; exec python3 -u - <<'PY'\n%s\nPY", f.Address, f.Dir, f.victim, program)
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
	// idle keeps more silent connections than each listener takes, from several processes: each may
	// have some thousand files.
	idle = dial + `
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
full, said = os.pipe()
for part in range(4):
    if os.fork(): continue
    kept = {tcp: [], unix: []}
    while True:
        for to in kept:
            try:
                if len(kept[to]) < 1200: kept[to].append(to())
            except OSError: time.sleep(0.01)
        if min(map(len, kept.values())) == 1200: # and for each that was closed another one
            os.write(said, bytes([part])); time.sleep(0.005)
            for to in kept: kept[to].pop(0).close()
parts = set()
while len(parts) < 4: parts.update(os.read(full, 4096))
print("tried 4 x 1200 connections to both")
time.sleep(60)
`
	// bodies sends large bodies without a credential, and slow ones of the size that is read with a
	// false one, from many clients at once.
	bodies = dial + `
answers = [0, 0]
def send(to, slow):
    head = b"POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE MUNGE:%s:\r\nContent-Length: 16384\r\n\r\n" % (b"A" * 200) if slow else b"POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"
    while time.time() < end:
        try:
            s = to()
            s.sendall(head)
            for i in range(64):
                s.sendall(b"x" * (256 if slow else 16384)); time.sleep(0.2 if slow else 0.01)
            s.recv(100)
        except OSError: time.sleep(0.05)
        answers[slow] += 1
end = time.time() + 30
ts = [threading.Thread(target=send, args=(to, i % 2), daemon=True) for to in (tcp, unix) for i in range(300)]
[t.start() for t in ts]
while min(answers) < 300: time.sleep(0.1)
print("tried", answers)
[t.join() for t in ts]
`
	// garbage sends invalid requests.
	garbage = dial + `
lines = [b"\x16\x03\x01" + os.urandom(300), b"GET /../../../etc/shadow HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 900000 + b"\r\n\r\n",
  b"GET /v1/jobs/99999999999999999999 HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v1/jobs/1/next HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"GET /v1/events?limit=9223372036854775807&after=-1 HTTP/1.1\r\nHost: x\r\n\r\n",
  b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: MUNGE " + b"A" * 60000 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 1000]
end, answers = time.time() + 20, 0
while time.time() < end:
    if answers: print("tried, refused", answers)
    for line in lines:
        for to in (tcp, unix):
            try:
                s = to(); s.sendall(line); s.settimeout(0.2)
                if s.recv(2000).startswith(b"HTTP/1.1 4"): answers += 1
            except OSError: pass
            finally:
                try: s.close()
                except Exception: pass
`
	// impostor answers on the sidecar's address whatever is asked: for four seconds, and until it
	// was asked, ten at most.
	impostor = `
import os, http.server, socketserver, threading, time
host, port = os.environ["ADDRESS"].rsplit(":", 1)
asked = []
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = b'{"ready":true,"done":false,"job":%s,"step":2,"steps":4,"drive":"merge","nodes":7,"parts":[{"job":%s,"node_list":["n8\\u001b[31m"],"cpus":[4]}]}' % ((os.environ["VICTIM"].encode(),) * 2)
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
        asked.append(self.path); print("tried: answered", self.path)
    do_GET = do_POST
    def log_message(self, *a): pass
socketserver.ThreadingTCPServer.allow_reuse_address = True
end = time.time() + 20
while time.time() < end:
    try: s = socketserver.ThreadingTCPServer((host, int(port)), H); print("got the address"); break
    except OSError: time.sleep(0.001)
threading.Thread(target=s.serve_forever, daemon=True).start()
begun = time.time()
while time.time() < begun + (4 if asked else 10): time.sleep(0.1)
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
		var failed error
		for _, address := range []string{"", "EVOSLURM_API=unix://" + f.Dir + "/run/api.sock"} {
			out, err := f.as(ctx, victim, address+" timeout 30 evosqueue --json=evoslurm >/dev/null && echo served")
			if err != nil || !strings.Contains(out, "served") {
				failed = errors.Join(failed, fmt.Errorf("evosqueue of another user %s: %v\n%s", address, err, out))
			}
		}
		return errors.Join(failed, <-done)
	}
}

// yielding reports an error where a stock job of the victim's does not start, since nodes are held for
// an attacker's job: its budget is an hour, and the hold would delay it by seven.
func yielding(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		if err := attack(ctx, f); err != nil {
			return err
		}
		return f.starts(ctx, 60, "--nodes=4")
	}
}

// outranked has a stock job start at once that outranks the holders, though its delay budget is not used up.
// The options are those of the holders, and of the stock job.
func outranked(holders, stock string) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		attack := strings.NewReplacer("6@7h", "6@30m", "evosbatch", "evosbatch "+holders).Replace(hoarding)
		if err := attackWith(attack)(ctx, f); err != nil {
			return err
		}
		<-ctx.Done() // the victim's job has ended: its own growths need not give way
		return f.starts(ctx, 15, "--nodes=3 "+stock)
	}
}

// starts returns an error if Slurm does not start a stock job of the victim's within some seconds. It
// asks Slurm, since srun may learn late that its job has started.
func (f *field) starts(ctx context.Context, within int, options string) error {
	out, err := f.as(context.WithoutCancel(ctx), victim, fmt.Sprintf(`
srun --quiet --job-name=stock-$$ %s --exclusive --time=8:00:00 true &
until squeue -h -t all --name=stock-$$ -o %%T | grep -v PENDING; do [ $SECONDS -lt %d ] || { late=1; break; }; sleep 0.3; done
scancel --user="$(id -un)" --name=stock-$$; wait; [ -z "$late" ]`, options, within))
	if err != nil {
		err = fmt.Errorf("a stock job does not start: %w\n%s%s", err, out, f.slurm("scontrol", "show", "reservation"))
	}
	return err
}

// printable reports an error where what the victim sees has control characters in it.
func printable(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		err := attack(ctx, f)
		for _, command := range []string{"evosqueue", "evosqueue --gantt", "evosacct -a", "evosctl events", "SHELL=/bin/sh script -qec 'evosqueue -o \"%i %j %k\"' /dev/null | tr -d '\\r'"} {
			out, e := f.as(ctx, victim, command)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w\n%s", command, e, out))
			}
			if !strings.Contains(command, "events") && !strings.Contains(out, "JobState=FAILED") && !strings.Contains(out, "x|y") {
				err = errors.Join(err, fmt.Errorf("%s does not show the name:\n%s", command, out))
			}
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				err = errors.Join(err, fmt.Errorf("%s prints %q", command, out[i:min(len(out), i+10)]))
			}
		}
		return err
	}
}

// partsRefused reports an error where the sidecar adopts any of the jobs that are called "part".
func partsRefused(attack func(context.Context, *field) error) func(context.Context, *field) error {
	return func(ctx context.Context, f *field) error {
		if err := attack(ctx, f); err != nil {
			return err
		}
		for parts := 0; ; time.Sleep(500 * time.Millisecond) {
			all, err := f.Jobs(attacker)
			if err != nil {
				return err
			}
			parts = 0
			for _, j := range all {
				if j.Name != "part" {
					continue
				}
				if parts++; !strings.HasPrefix(j.Reason, "refused: ") {
					return fmt.Errorf("a part of a job was adopted: %+v", j)
				}
			}
			switch {
			case parts >= 2: // components
				return nil
			case ctx.Err() != nil:
				return fmt.Errorf("nothing was tried: the sidecar knows %d of 2 parts", parts)
			}
		}
	}
}

var attacks = []attack{
	{name: "comments", short: true, run: attackWith(comments)},
	{name: "node lists", short: true, run: attackWith(nodeLists)},
	{name: "long profiles", run: served(attackWith(longProfiles))},
	{name: "chains", run: served(attackWith(chains))},
	{name: "greed", short: true, alone: true, run: attackWith(greed)},
	{name: "forged output", short: true, alone: true, run: growing(forgedOutput)},
	{name: "stopped commands", run: growing(stoppedCommands)},
	{name: "forged names", short: true, run: attackWith(forgedNames)},
	{name: "another's job", short: true, run: attackWith(othersJob)},
	{name: "rewritten markers", short: true, alone: true, run: attackWith(rewritten)},
	{name: "names", short: true, run: printable(attackWith(names))},
	{name: "churn", run: attackWith(churn)},
	{name: "many jobs", run: attackWith(manyJobs)},
	{name: "huge scripts", run: attackWith(hugeScripts)},
	{name: "arrays", short: true, run: partsRefused(attackWith(arrays))},
	{name: "requeues", run: attackWith(requeues)},
	{name: "borrowed", run: attackWith(borrowed)},
	{name: "hoarding", run: yielding(attackWith(hoarding))},
	{name: "tier", run: outranked("", "--partition=urgent")},
	{name: "preemption", run: outranked("--qos=spare", "--qos=rush")},
	{name: "refused changes", run: served(attackWith(refusedChanges))},
	{name: "dry runs", run: served(attackWith(dryRuns))},
	{name: "waiters", run: served(attackWith(waiters))},
	{name: "idle connections", run: served(python(idle))},
	{name: "bodies", run: served(python(bodies))},
	{name: "garbage", short: true, run: served(python(garbage))},
	{name: "impostor", run: restarted, away: 10 * time.Second},
	{name: "relay", run: relayed},
	{name: "cookie", run: cookie},
	{name: "taken folder", run: takenFolder},
}
