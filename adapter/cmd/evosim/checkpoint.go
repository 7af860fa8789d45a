package main

import (
	"fmt"
	"io"
	"os"

	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
)

// leave has an experiment be left and resumed as the flags say.
func (f *runFlags) leave(e *simulate.Experiment) error {
	e.Until = f.until
	if f.checkpoint != "" {
		e.Left = func(c *simulate.Checkpoint) { f.left = c }
	}
	if f.resume == "" {
		return nil
	}
	text, err := os.ReadFile(f.resume)
	if err != nil {
		return err
	}
	c, err := simulate.DecodeCheckpoint(text, version.Of(linked))
	if err != nil {
		return evosim.Failure{Err: fmt.Errorf("--resume=%s: %w", f.resume, err)}
	}
	if f.until > 0 && f.until <= c.Second {
		return fmt.Errorf("--until=%d: the checkpoint is at second %d already", f.until, c.Second)
	}
	before, err := planner.StrategyByName(c.Strategy)
	if err != nil {
		return fmt.Errorf("--resume=%s: %w", f.resume, err)
	}
	if e.Resume = c; f.strategy != "" && f.strategy != c.Strategy {
		e.Then = e.Strategy
	}
	e.Strategy, e.Config.Strategy = before, c.Strategy
	return nil
}

// save writes the point at which the experiment was stopped, if it was.
func (f *runFlags) save() error {
	if f.left == nil {
		return nil
	}
	return wholefile.Write(f.checkpoint, 0o666, func(w io.Writer) error {
		_, err := w.Write(f.left.Encode(version.Of(linked)))
		return err
	})
}
