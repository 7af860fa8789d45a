package controller_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// stubborn is a site's plugin that rejects every expander.
const stubborn = `
function slurm_job_submit(job, parts, uid)
	if job.name ~= nil and job.name:find("^evo_") then slurm.log_user("No expanders here.") return slurm.ERROR end
	return slurm.SUCCESS
end
function slurm_job_modify(job, old, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
`

// TestGiveUp checks that a growth that fails repeatedly is given up: the script learns of it, the
// job keeps what it has, nothing is held for it, and the next call of next tries again.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{ExtraConf: "JobSubmitPlugins=lua", Files: map[string]string{"job_submit.lua": stubborn}},
		func(c *config.Config) { c.GiveUp = 2 * time.Second })
	l.run("refused by a plugin", func(l *lab) {
		id := l.submit("1@2s,3@60s")
		l.running(id, 1)
		for range 2 {
			_, err := l.Next(l.ctx(), id, api.NextRequest{From: 1})
			if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "given up") || !strings.Contains(err.Error(), "No expanders here") {
				l.t.Fatalf("next says %v", err)
			}
			job := l.running(id, 1)
			if job.Nodes != 1 || !strings.Contains(job.Reason, "given up") {
				l.t.Errorf("it has %d nodes: %s", job.Nodes, job.Reason)
			}
			l.eventually("no holds", func() error {
				left, err := l.slurm.Reservations(l.ctx())
				if err == nil && len(left) > 0 {
					err = fmt.Errorf("%+v", left)
				}
				return err
			})
		}
		willing := strings.Replace(stubborn, "^evo_", "^none$", 1)
		l.must(os.WriteFile(filepath.Join(l.cluster.Dir(), "job_submit.lua"), []byte(willing), 0o644))
		later := time.Now().Add(time.Minute)
		l.must(os.Chtimes(filepath.Join(l.cluster.Dir(), "job_submit.lua"), later, later))
		l.has(l.next(id, 1), 3)
		l.end(id)
	})
}
