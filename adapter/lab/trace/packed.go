package trace

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Packed holds jobs in a third of their usual memory: only known values, without pointers.
type Packed struct {
	blocks   [][]byte // full ones are left as they are, not copied to make room
	places   []place
	speedups []malleable.Speedup
	job      packing
}

// place is where a job begins, as if all blocks were of one size; it rises as jobs are added.
type place struct {
	submit float64
	at     int
}

// block is the bytes of a block; a job that is larger has one of its own.
const block = 1 << 20

// Behind the bits of the fields that are not -1, what else there is of a job.
const (
	hasMore = 1 << (len(fields) + iota)
	hasShape
)

// Add puts a job behind the others.
func (p *Packed) Add(j Job) {
	values, what := j.values(), uint64(0)
	for i, x := range values {
		if x != -1 {
			what |= 1 << i
		}
	}
	if j.More != "" {
		what |= hasMore
	}
	if j.Shape != nil {
		what |= hasShape
	}
	p.job = binary.AppendUvarint(p.job[:0], what)
	for _, x := range values {
		if x != -1 {
			p.job.number(x)
		}
	}
	if j.More != "" {
		p.job.text(j.More)
	}
	if j.Shape != nil {
		p.shape(j.Shape)
	}
	last := len(p.blocks) - 1
	if last < 0 || len(p.blocks[last])+len(p.job) > cap(p.blocks[last]) {
		p.blocks = append(p.blocks, make([]byte, 0, max(block, len(p.job))))
		last++
	}
	p.places = append(p.places, place{j.Submit, last*block + len(p.blocks[last])})
	p.blocks[last] = append(p.blocks[last], p.job...)
}

func (p *Packed) shape(s *Shape) {
	p.job.text(s.ID)
	p.job.whole(int64(s.Kind))
	p.job.profile(s.Profile)
	p.job.whole(int64(len(s.Alternatives)))
	for _, a := range s.Alternatives {
		p.job.profile(a)
	}
	p.job.whole(int64(s.By))
	p.job.number(float64(s.ExpandLimit))
	p.job.whole(int64(s.Min))
	p.job.whole(int64(s.Max))
	if s.Speedup == nil {
		p.job.whole(-1)
		return
	}
	p.job.whole(int64(len(p.speedups)))
	p.speedups = append(p.speedups, s.Speedup)
}

// Sort sorts jobs by submission; jobs of the same second keep their order.
func (p *Packed) Sort() {
	slices.SortFunc(p.places, func(a, b place) int {
		if c := cmp.Compare(a.submit, b.submit); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
}

// All returns the jobs, one after the other.
func (p *Packed) All() iter.Seq[Job] { return p.submitted(func(float64) bool { return true }) }

// Between returns those that are submitted from a second on, until before another.
func (p *Packed) Between(from, until float64) iter.Seq[Job] {
	return p.submitted(func(at float64) bool { return from <= at && at < until })
}

func (p *Packed) submitted(then func(at float64) bool) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for _, there := range p.places {
			if then(there.submit) && !yield(p.unpack(p.blocks[there.at/block][there.at%block:])) {
				return
			}
		}
	}
}

func (p *Packed) unpack(text unpacking) Job {
	var values [len(fields)]float64
	what := text.bits()
	for i := range values {
		values[i] = -1
		if what>>i&1 == 1 {
			values[i] = text.number()
		}
	}
	j := ofValues(values)
	if what&hasMore != 0 {
		j.More = text.text()
	}
	if what&hasShape == 0 {
		return j
	}
	s := &Shape{ID: text.text(), Kind: Kind(text.whole()), Profile: text.profile()}
	if n := text.whole(); n > 0 {
		s.Alternatives = make([]planner.Profile, n)
	}
	for i := range s.Alternatives {
		s.Alternatives[i] = text.profile()
	}
	s.By, s.ExpandLimit = planner.Preference(text.whole()), planner.ExpandLimit(text.number())
	s.Min, s.Max = int(text.whole()), int(text.whole())
	if i := text.whole(); i >= 0 {
		s.Speedup = p.speedups[i]
	}
	j.Shape = s
	return j
}

// packing is a packed job, unpacking the rest of one.
type packing []byte
type unpacking []byte

func (p *packing) whole(n int64) { *p = binary.AppendVarint(*p, n) }

func (u *unpacking) whole() int64 {
	n, size := binary.Varint(*u)
	*u = (*u)[size:]
	return n
}

// number packs the low bits of a number first: most have 0 there.
func (p *packing) number(x float64) {
	*p = binary.AppendUvarint(*p, bits.ReverseBytes64(math.Float64bits(x)))
}

func (u *unpacking) number() float64 { return math.Float64frombits(bits.ReverseBytes64(u.bits())) }

func (u *unpacking) bits() uint64 {
	n, size := binary.Uvarint(*u)
	*u = (*u)[size:]
	return n
}

func (p *packing) text(s string) {
	p.whole(int64(len(s)))
	*p = append(*p, s...)
}

func (u *unpacking) text() string {
	n := u.whole()
	s := string((*u)[:n])
	*u = (*u)[n:]
	return s
}

func (p *packing) profile(steps planner.Profile) {
	if steps == nil {
		p.whole(-1)
		return
	}
	p.whole(int64(len(steps)))
	for _, s := range steps {
		p.whole(s.Duration)
		p.whole(int64(s.Nodes))
	}
}

func (u *unpacking) profile() planner.Profile {
	n := u.whole()
	if n < 0 {
		return nil
	}
	steps := make(planner.Profile, n)
	for i := range steps {
		steps[i] = planner.Step{Duration: u.whole(), Nodes: int(u.whole())}
	}
	return steps
}
