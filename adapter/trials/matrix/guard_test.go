package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// expanding returns the operations that show what the guard is for, and that it works:
// on a cluster without it, and on one whose users are kept from expanding other
// people's jobs by contrib/job_submit.lua.
func (m *manual) expanding(guarded bool) []operation {
	base := func(ctx context.Context) (err error) {
		if m.base, err = m.submit(ctx, "--nodes=2"); err != nil {
			return err
		}
		return m.is(ctx, m.base, 2)
	}
	if !guarded {
		return []operation{{name: "anybody expands anybody's job", quirk: true, try: func(ctx context.Context) error {
			if err := base(ctx); err != nil {
				return err
			}
			return m.expandAs(ctx, m.cluster.Users()[1])
		}}}
	}
	return []operation{
		{name: "with the guard: others do not", try: func(ctx context.Context) error {
			if err := base(ctx); err != nil {
				return err
			}
			err := m.expandAs(ctx, m.cluster.Users()[1])
			if err == nil {
				return errors.New("another user has expanded the job")
			}
			if !strings.Contains(err.Error(), "not yours to expand") {
				return fmt.Errorf("the refusal does not say why: %w", err)
			}
			return nil
		}},
		{name: "with the guard: its owner and root do", try: func(ctx context.Context) error {
			return errors.Join(m.expandAs(ctx, m.cluster.Users()[0]), m.expandAs(ctx, m.root()))
		}},
	}
}

// expandAs gets an expander of the base job as a user, and gives it back.
func (m *manual) expandAs(ctx context.Context, u slurmtest.User) error {
	q := slurmctl.AllocateRequest{User: u.ClientUser(), Name: "guard", Exclusive: true, Nodes: 1, ExpandJob: m.base}
	if u.Name == slurmtest.Root.Name {
		q.User = nil
	}
	k, err := m.slurm.Allocate(ctx, q)
	if err != nil {
		return err
	}
	return m.slurm.Cancel(ctx, k.ID)
}

// guardText is contrib/job_submit.lua: in the source, or beside the test program.
func guardText() ([]byte, error) {
	text, err := os.ReadFile("../../../contrib/job_submit.lua")
	if errors.Is(err, os.ErrNotExist) {
		return os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "job_submit.lua"))
	}
	return text, err
}
