package injob

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// dmtcpOptions takes the options of a stand-in for a program of DMTCP, and refuses those that DMTCP's manual does not have.
const dmtcpOptions = `#!/bin/sh
dir=. file= port= quiet=
while :; do
  case $1 in
  --quiet) quiet=1; shift;;
  --new-coordinator|--no-gzip|--bcheckpoint) shift;;
  --coord-port) port=$2; shift 2;;
  --port-file) file=$2; shift 2;;
  --ckptdir) dir=$2; shift 2;;
  -*) echo "no option $1" >&2; exit 1;;
  *) break;;
  esac
done
start() { # a coordinator, whose port is the process's number
  [ $port = 0 ] || exit 1
  (cd "$dir" && pwd) >$STANDIN/$$ || exit 1
  printf '%s\0' "$@" >$STANDIN/$$.words
  echo $$ >"$file"
}
`

// dmtcpPrograms stand in for DMTCP's. An image has the words of the command, which goes on with RESUMED=1.
var dmtcpPrograms = map[string]string{
	"dmtcp_launch": `start "$@"; exec "$@"`,
	"dmtcp_command": `
[ ! $quiet ] || { echo "no option --quiet" >&2; exit 1; } # in DMTCP 4
[ -e $STANDIN/$port ] || { echo "no coordinator" >&2; exit 2; }
cp $STANDIN/$port.words "$(cat $STANDIN/$port)/ckpt_sh_$port.dmtcp"`,
	"dmtcp_restart": `
[ $# = 1 ] || exit 1 # it would go on from an older checkpoint, too
case $1 in ckpt_*.dmtcp) [ -e "$1" ] || exit 1;; *) exit 1;; esac
file=$PWD/$file
start && cp $1 $STANDIN/$$.words && RESUMED=1 exec xargs -0 -a $1 env`,
}

// TestBagByDMTCP checks the commands of --checkpoint=dmtcp with programs that stand in for DMTCP's.
func TestBagByDMTCP(t *testing.T) {
	programs, state := t.TempDir(), t.TempDir()
	for name, text := range dmtcpPrograms {
		must.OK(t, os.WriteFile(filepath.Join(programs, name), []byte(dmtcpOptions+text+"\n"), 0o700))
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	t.Setenv("STANDIN", state)
	f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(req api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1") }}
	dir := filepath.Join(t.TempDir(), "a bag")
	_, _, end := following(t, f, "--tasks=1-8", "--bag="+dir, "--checkpoint=dmtcp", "--drain-time=20s", "--", "sh", "-c",
		`[ -z "$RESUMED" ] || { echo "task $0 resumed"; exit; }; while [ ! -e $STANDIN/go ]; do sleep 0.05; done; echo "task $0"`)
	f.eventually("all run", func() bool {
		ports, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*", ".port"))
		return len(ports) == 8
	})
	for id := range 8 {
		must.OK(t, os.WriteFile(filepath.Join(dir, "checkpoints", strconv.Itoa(id+1), "ckpt_sh_0.dmtcp"), nil, 0o600))
	}
	f.mu.Lock()
	f.offer = append(f.offer, api.Offer{ID: 1, Kind: "shrink", Mandatory: true, Nodes: 1, NodeList: "n2", Seconds: 60})
	f.mu.Unlock()
	f.eventually("the tasks of a node wait, with checkpoints", func() bool { s := summary(t, dir); return s.Running == 4 && s.Saved == 4 })
	must.OK(t, os.WriteFile(filepath.Join(state, "go"), nil, 0o600))
	if status, s := end(), summary(t, dir); status != 0 || s.Done != 8 || s.Voids != 0 {
		t.Errorf("status %d, %+v; it printed\n%s", status, s, f.out.String())
	}
	resumed := 0
	for _, id := range strings.Fields("1 2 3 4 5 6 7 8") {
		switch got := text(t, filepath.Join(dir, "out", id)); got {
		case "task " + id + " resumed\n":
			resumed++
		case "task " + id + "\n":
		default:
			t.Errorf("task %s printed %q", id, got)
		}
	}
	if resumed != 4 {
		t.Errorf("%d tasks were resumed", resumed)
	}
}
