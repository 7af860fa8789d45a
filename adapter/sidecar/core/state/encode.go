package state

import (
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// coded writes the state. Fields with the tag `codec:"-"` are caches, which fill again, what Decode makes again, and
// what is empty between two steps.
var coded = codec.New(codec.Options{Roots: []any{(*Core)(nil)}, Values: codec.Parts, Graph: true})

const whatIsEncoded = "evoslurm state"

func heading(version string) string { return codec.Heading(whatIsEncoded, version, coded.Format()) }

// Encode returns the state as bytes that only the same version reads. It leaves out the parameters of plugins, which
// may be secrets; no decision depends on them. It fails during a step.
func Encode(c *Core) ([]byte, error) {
	body, err := encode(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the core's state: %w", err)
	}
	return codec.Seal(heading(c.Site.Version), body), nil
}

func encode(c *Core) ([]byte, error) {
	if len(c.Effects) > 0 || len(c.Unsaved) > 0 {
		return nil, errors.New("a step is under way")
	}
	n := *c
	n.Config = c.Config.Discreet()
	if c.Looking != nil {
		m := *c.Looking
		m.Core, n.Looking = &n, &m
	}
	root, e := &n, coded.Encoder(nil, nil)
	codec.Write(e, &root)
	return e.B, e.Err()
}

// Decode returns the state that [Encode] has written in the same version. The caller must attach what belongs to the
// process: see [Core.Handling].
func Decode(data []byte, version string) (*Core, error) {
	body, err := codec.Open(heading(version), data)
	switch other := new(codec.VersionError); {
	case errors.Is(err, codec.ErrForeign):
		return nil, errors.New("this is no encoded state of evoslurmd: name another file")
	case errors.As(err, &other):
		return nil, fmt.Errorf("cannot read the state: %w; use the program that wrote it, or begin without the state", err)
	case err != nil:
		return nil, fmt.Errorf("cannot read the state: %w; copy it again, or begin without the state", err)
	}
	c, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the state: %w; begin without it", err)
	}
	return c, nil
}

func decode(body []byte) (*Core, error) {
	var c *Core
	d := coded.Decoder(body, nil)
	if codec.Read(d, &c); d.Err() != nil || c == nil || len(d.B) > 0 {
		return nil, codec.ErrMalformed
	}
	c.Log.C, c.Handling, c.Unsaved = c, &msg.Handling{}, map[*Job]bool{}
	c.Made = make([]*msg.Made, len(c.Last))
	c.Snapshot.index()
	if c.Looking != nil {
		c.Looking.S.index()
	}
	return c, nil
}

// index fills ByID and Index.
func (s *Snapshot) index() {
	if s == nil {
		return
	}
	s.ByID, s.Index = make(map[slurmctl.JobID]*slurmctl.Job, len(s.Jobs)), make(map[string]int, len(s.Nodes))
	for i := range s.Jobs {
		s.ByID[s.Jobs[i].ID] = &s.Jobs[i]
	}
	for i, n := range s.Nodes {
		s.Index[n.Name] = i
	}
}
