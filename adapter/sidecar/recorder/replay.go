package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// Find returns the files of a recording: for a file, those of its run from it on; for a folder,
// those of the newest run.
func Find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir, run, from := filepath.Dir(path), "", 0
	if info.IsDir() {
		dir = path
	} else if run, from = parse(path); run == "" {
		return []string{path}, nil // of another name: a copy
	}
	files, err := Files(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no recordings (*%s)", dir, suffix)
	}
	if run == "" {
		run, _ = parse(files[len(files)-1])
		from = 0
	}
	var all []string
	for _, f := range files {
		if r, n := parse(f); r == run && n >= from {
			all = append(all, f)
		}
	}
	return all, nil
}

// Difference is where a core did something other than recorded.
type Difference struct {
	At            time.Time
	Inputs        []msg.Input
	Recorded, Now msg.Effect // nil: none
}

func (d *Difference) Error() string {
	var in []string
	for _, i := range d.Inputs {
		in = append(in, TellInput(i))
	}
	text := fmt.Sprintf("at %s, after %s:\n  recorded: %s\n  now:      %s", d.At.Format(time.RFC3339Nano), strings.Join(in, ", "), tell(d.Recorded), tell(d.Now))
	if d.Recorded != nil && d.Now != nil && tell(d.Recorded) == tell(d.Now) {
		text += fmt.Sprintf("\n  recorded: %+v\n  now:      %+v", d.Recorded, d.Now)
	}
	return text
}

// Player steps a core through a recording.
type Player struct {
	Version string
	// Since is the time from which steps count and are seen; zero for the beginning. Until is the time at which to
	// stop; zero for the end.
	Since, Until time.Time
	// See, if set, sees every step.
	See func(Step)

	Core  *core.Core // nil: it cannot be replayed
	Steps int
	From  time.Time // of the first step
	To    time.Time // and of the last
	Gap   string    // why steps could be read only from some time on; "": they were replayed

	Missing string // what is missing of the recording, although all steps in it were replayed; "": nothing
	lost    string // why the core is not known
}

// Play steps a new core through all files, in order. It returns a *[Difference] if the core does
// something else, and codec.ErrCut, after all complete records, if the last file is truncated.
func (p *Player) Play(files []string) error {
	run, next := "", 0
	files, err := p.since(files)
	if err != nil {
		return err
	}
	for i, name := range files {
		err := p.file(name, &run, &next)
		var differs *Difference
		switch {
		case errors.Is(err, errUntil):
			return nil
		case errors.As(err, &differs):
			return err
		case errors.Is(err, codec.ErrCut) && i < len(files)-1:
			p.lose("a file before is cut short")
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

var errUntil = errors.New("that was the time")

// since leaves out the files before the last one from which a replay can begin for Since.
func (p *Player) since(files []string) ([]string, error) {
	if p.Since.IsZero() {
		return files, nil
	}
	from := 0
	for i, name := range files[1:] {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r, err := NewReader(f, p.Version)
		_ = f.Close()
		switch {
		case err != nil: // the player says so when it gets there
		case r.Start.At.After(p.Since):
			return files[from:], nil
		case r.Start.State != "":
			from = i + 1
		}
	}
	return files[from:], nil
}

// lose records that the core's state is no longer known.
func (p *Player) lose(why string) {
	if p.Core, p.lost = nil, why; p.Steps > 0 {
		p.lost = fmt.Sprintf("%s, after %s", why, p.To.Format(time.RFC3339))
	}
}

// resume continues with the state at the beginning of a file, if the core's is not known.
func (p *Player) resume(s Start) {
	if p.Core != nil || s.State == "" {
		return
	}
	c, err := core.Decode([]byte(s.State), s.Site.Version)
	if err != nil {
		p.lost = err.Error()
		return
	}
	p.Core, p.lost, p.Missing = c, "", p.lost
}

// begin begins a file, or loses the core if it is not the next one.
func (p *Player) begin(s Start, run string, next int) {
	switch {
	case run == "" && s.Number == 0:
		p.Core = core.New(s.Site, s.Config, s.Strategy, s.Begun)
	case run == "" && s.State != "":
	case run == "":
		p.lose(fmt.Sprintf("the recording's beginning is missing (this is file %d of its run)", s.Number))
	case s.Run != run || s.Number != next && p.Core != nil:
		p.lose("files are missing")
	}
	p.resume(s)
}

func (p *Player) file(name string, run *string, next *int) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := NewReader(f, p.Version)
	if err != nil {
		return err
	}
	p.begin(r.Start, *run, *next)
	*run, *next = r.Start.Run, r.Start.Number+1
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !p.Until.IsZero() && s.At.After(p.Until) {
			return errUntil
		}
		if err := p.step(s); err != nil {
			return err
		}
	}
}

func (p *Player) step(s Step) error {
	seen := !s.At.Before(p.Since)
	if p.To = s.At; seen {
		if p.Steps++; p.Steps == 1 {
			p.From = s.At
		}
	}
	if p.Core == nil && p.Gap == "" {
		p.Gap = p.lost
	}
	if p.Core != nil {
		given := s.Inputs
		effects := p.Core.Step(s.At, given...)
		for i := range max(len(effects), len(s.Effects)) {
			var a, b msg.Effect
			if i < len(s.Effects) {
				a = s.Effects[i]
			}
			if i < len(effects) {
				b = effects[i]
			}
			if !sameEffect(a, b) {
				return &Difference{s.At, s.Inputs, a, b}
			}
		}
	}
	if p.See != nil && seen {
		p.See(s)
	}
	return nil
}

// sameEffect compares effects as they are written down.
func sameEffect(a, b msg.Effect) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, y := coded.Encoder(nil, nil), coded.Encoder(nil, nil)
	codec.Write(x, &a)
	codec.Write(y, &b)
	return bytes.Equal(x.B, y.B)
}
