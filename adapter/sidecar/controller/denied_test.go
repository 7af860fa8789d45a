package controller_test

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestDenied checks on a real Slurm that an operator's change counts at once: the denied user's running job goes on,
// a waiting one is refused, by the user's group too, and adopted again later. Names that do not exist are doubts.
func TestDenied(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(*config.Config) {})
	who, err := user.LookupId(strconv.Itoa(int(l.user(0).UID)))
	l.must(err)
	group, err := user.LookupGroupId(who.Gid)
	l.must(err)
	running := l.submit("1@30m,2@30m")
	l.running(running, 1)
	l.eventually("a hold in the budget", func() error {
		b, err := l.Budget(l.ctx())
		if err == nil && (len(b.Use) == 0 || b.Use[0].Name != who.Username || b.Use[0].Holds != 1 || len(b.Limits) == 0) {
			err = fmt.Errorf("%+v", b)
		}
		return err
	})
	waiting := l.submit("8@1h")
	l.planned(waiting)
	refused := func(by string) {
		l.t.Helper()
		l.eventually("a refusal by "+by, func() error {
			job, err := l.Job(l.ctx(), waiting)
			if err == nil && !strings.Contains(job.Reason, by) {
				err = fmt.Errorf("job %d: %s", waiting, job.Reason)
			}
			return err
		})
	}
	for _, by := range []struct{ key, name string }{{"deny.users", who.Username}, {"deny.groups", group.Name}} {
		_, err = l.ChangeSettings(l.ctx(), api.SettingsRequest{Set: map[string]string{by.key: by.name}}, "tester")
		l.must(err)
		refused(by.key)
		if a, err := l.Access(l.ctx(), l.user(0).UID, api.AccessQuery{}); err != nil || a.Allowed || !strings.Contains(a.Reason, by.key) {
			t.Errorf("access: %+v, %v", a, err)
		}
		l.running(running, 1)
		_, err = l.ChangeSettings(l.ctx(), api.SettingsRequest{Configured: []string{by.key}}, "tester")
		l.must(err)
		l.planned(waiting)
	}
	got, err := l.ChangeSettings(l.ctx(), api.SettingsRequest{Add: map[string][]string{"deny.users": {"nobody-there"}, "deny.groups": {"none-there"}, "deny.accounts": {"root", "gone"}, "deny.qos": {"normal", "no"}, "deny.partitions": {"nowhere"}}}, "tester")
	l.must(err)
	want := []string{`deny.accounts names "gone", which does not exist`, `deny.groups names "none-there", which does not exist`, `deny.partitions names "nowhere", which does not exist`,
		`deny.qos names "no", which does not exist`, `deny.users names "nobody-there", which does not exist`}
	if !slices.Equal(got.Warnings, want) {
		t.Errorf("warnings %q, want %q", got.Warnings, want)
	}
	l.cancel(waiting)
	l.cancel(running)
}
