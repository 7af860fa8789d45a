package simulate

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Checkpoint is the whole state of an experiment, from which it can be resumed or continued
// differently.
type Checkpoint struct {
	Strategy string // strategy until then
	Second   int64  // of the experiment
	Of       []byte // checksum of the workload and the options
	State    []byte
}

// NotTheSame means that a checkpoint is from another experiment.
type NotTheSame struct{ Second int64 }

func (e NotTheSame) Error() string {
	return fmt.Sprintf("the checkpoint at second %d is of another workload or of other options: give those with which it was written", e.Second)
}

// input holds what an experiment and its continuation must have in common.
type input struct {
	Cluster   slurmsim.Options
	Jobs      []Submission
	Config    config.Config
	EveryPoll bool
	Kinds     []int
}

// shell is the state of the sidecar outside its core.
type shell struct {
	Core         []byte
	Calls        uint64
	WantsAccount bool
	Rhythm       drive.Rhythm
}

// coded writes checkpoints. What belongs to a trial finds the new one when it is read.
var coded = codec.New(codec.Options{
	Roots: []any{Checkpoint{}, input{}, tally{}, slurmsim.Cluster{}, memory{}, Database{}, shell{}},
	Values: slices.Concat(codec.Parts, slurmsim.Parts,
		[]any{submits{}, drains{}, reserves{}, ticks{}, samePoll{}, calls{}, withdraws{}, script{}, (*listener)(nil), (*caller)(nil)}),
	Special: map[reflect.Type]codec.Special{
		reflect.TypeFor[*trial]():   codec.SpecialOf(func(*codec.Encoder, *trial) {}, func(d *codec.Decoder, x **trial) { *x, _ = d.With.(*trial) }),
		reflect.TypeFor[*Sidecar](): codec.SpecialOf(func(*codec.Encoder, *Sidecar) {}, func(d *codec.Decoder, x **Sidecar) { *x = d.With.(*trial).sidecar }),
		reflect.TypeFor[*rand.PCG](): codec.SpecialOf(func(e *codec.Encoder, r *rand.PCG) {
			b, _ := r.MarshalBinary() // which returns no error
			e.Text(string(b))
		}, func(d *codec.Decoder, x **rand.PCG) {
			if (*x).UnmarshalBinary([]byte(d.Text())) != nil {
				d.Fail()
			}
		}),
	},
	Graph: true,
})

// what begins a file with a checkpoint.
const what = "evosim checkpoint"

// Encode returns the checkpoint as a file that only the same version reads.
func (c *Checkpoint) Encode(version string) []byte {
	e := coded.Encoder(nil, nil)
	codec.Write(e, c)
	return codec.Seal(codec.Heading(what, version, coded.Format()), e.B)
}

// DecodeCheckpoint returns the checkpoint in a file.
func DecodeCheckpoint(file []byte, version string) (*Checkpoint, error) {
	body, err := codec.Open(codec.Heading(what, version, coded.Format()), file)
	c := new(Checkpoint)
	if err == nil {
		d := coded.Decoder(body, nil)
		codec.Read(d, c)
		err = d.Err()
	}
	switch other := new(codec.VersionError); {
	case errors.Is(err, codec.ErrForeign):
		return nil, errors.New("this is no checkpoint of evosim run: name another file")
	case errors.As(err, &other):
		return nil, fmt.Errorf("cannot read the checkpoint: %w; use the program that wrote it, or run from the start", err)
	case err != nil:
		return nil, fmt.Errorf("cannot read the checkpoint: %w; copy it again, or run from the start", err)
	}
	return c, nil
}

// inputs returns a checksum of the trial's input.
func (t *trial) inputs() ([]byte, error) {
	in := input{t.Cluster, t.Jobs, t.Config, t.EveryPoll, t.Kinds}
	in.Config.Strategy = "" // which may be another one in the continuation
	for i := range in.Jobs {
		if in.Jobs[i].Demand != nil {
			return nil, errors.New("a job that asks for nodes as it runs cannot be written to a checkpoint")
		}
	}
	e := coded.Encoder(nil, nil)
	codec.Write(e, &in)
	sum := sha256.Sum256(e.B)
	return sum[:], e.Err()
}

// checkpoint returns the trial's current state.
func (t *trial) checkpoint() (*Checkpoint, error) {
	of, err := t.inputs()
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Strategy: t.Strategy.Name(), Second: int64(t.cluster.Elapsed().Seconds()), Of: of}
	e := coded.Encoder(nil, nil)
	codec.Write(e, t.cluster)
	codec.Write(e, &t.tally)
	if s := t.sidecar; s != nil {
		sh := shell{Calls: s.client.Calls(), WantsAccount: s.client.WantsAccount(), Rhythm: s.driver.Rhythm()}
		if sh.Core, err = s.core.Encode(); err != nil {
			return nil, err
		}
		codec.Write(e, &s.memory)
		codec.Write(e, s.Database)
		codec.Write(e, &sh)
		c.Strategy = s.Strategy.Name()
	}
	c.State = e.B
	return c, e.Err()
}

// start starts the sidecar, or continues from the checkpoint.
func (t *trial) start() error {
	s, c := t.sidecar, t.Resume
	if c == nil {
		if s != nil {
			s.Start()
		}
		return nil
	}
	if of, err := t.inputs(); err != nil || !bytes.Equal(of, c.Of) {
		return errors.Join(err, NotTheSame{c.Second})
	}
	d := coded.Decoder(c.State, t)
	codec.Read(d, t.cluster)
	codec.Read(d, &t.tally)
	if s != nil {
		var sh shell
		codec.Read(d, &s.memory)
		codec.Read(d, s.Database)
		if codec.Read(d, &sh); d.Err() != nil {
			return d.Err()
		}
		s.attach()
		s.client.Restored(sh.Calls, sh.WantsAccount)
		s.driver.SetRhythm(sh.Rhythm)
		var err error
		if s.core, err = core.Decode(sh.Core, simulated); err != nil {
			return err
		}
	}
	if d.Err() != nil || len(d.B) > 0 || len(t.Subjects) != len(t.Jobs) {
		return codec.ErrMalformed
	}
	t.cluster.Restored()
	for i, j := range t.Subjects {
		j.Submission = &t.Jobs[i]
	}
	if t.Then != nil && s != nil {
		t.Config.Strategy = t.Then.Name()
		s.Use(t.Then)
	}
	return nil
}

// simulated is the version that the sidecar's core shows.
const simulated = "simulated"

// Use makes the sidecar plan by another strategy from now on, as evosctl strategy use does.
func (s *Sidecar) Use(strategy planner.Strategy) {
	s.Strategy, s.Config.Strategy = strategy, strategy.Name()
	cfg := s.Config
	s.give(msg.Configuration{Config: &cfg, Strategy: msg.Strategy{ExpandLimit: planner.ExpandLimitOf(strategy), Plugin: s.Policy != nil}})
}
