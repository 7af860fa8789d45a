package recorder

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// Start is the head of every file.
type Start struct {
	Run      string // when the sidecar was started: the files of one run have it in common
	Number   int    // of the file in its run, from 0
	Begun    time.Time
	At       time.Time // when the file was begun
	State    string    // of the core at that time; "" in the first file, and if it is too large
	Zone     int       // seconds east of UTC, for printed times
	Site     msg.Site
	Config   config.Config // without secrets
	Strategy msg.Strategy
}

// Step is one of the core: what went in, and what came out.
type Step struct {
	At      time.Time
	Inputs  []msg.Input
	Effects []msg.Effect
}

// What is wrong with a file.
var (
	ErrNoRecording = errors.New("this is not a recording of evoslurmd")
	ErrTampered    = errors.New("the recording was changed after it was written, or is damaged: a checksum does not fit")
	ErrCut         = errors.New("the recording is cut short")
)

// VersionError is a recording that another version of Evoslurm has made.
type VersionError struct{ Recorded, Here string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the recording is of %s, this is %s: replay it with the evosim of that version", e.Recorded, e.Here)
}

const (
	magic     = "evoslurm recording"
	blockSize = 256 << 10 // of records, before they are compressed
	mostBlock = 64 << 20  // that a reader takes
)

// format identifies what this program writes and reads.
var format = func() string {
	sum := sha256.Sum256([]byte(schema()))
	return hex.EncodeToString(sum[:6])
}()

func heading(version string) string {
	if version == "" {
		version = "(devel)"
	}
	return fmt.Sprintf("%s, version %s, format %s\n", magic, strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, version), format)
}

// A block is the length of the rest, the length of its records, a checksum over the previous block
// and this one, and the compressed records.
type blockHead struct {
	Packed, Plain uint32
	Sum           [16]byte
}

const headSize = 4 + 4 + 16

func chain(before [16]byte, plain uint32, packed []byte) (sum [16]byte) {
	h := sha256.New()
	h.Write(before[:])
	_ = binary.Write(h, binary.LittleEndian, plain)
	h.Write(packed)
	copy(sum[:], h.Sum(nil))
	return sum
}

func firstSum(heading string) (sum [16]byte) {
	all := sha256.Sum256([]byte(heading))
	copy(sum[:], all[:])
	return sum
}

// segment writes one file.
type segment struct {
	w    io.Writer
	enc  encoder
	sum  [16]byte
	size int64
	pack *flate.Writer
	buf  bytes.Buffer
}

func (s *segment) begin(w io.Writer, version string, start Start) error {
	s.w, s.enc = w, encoder{b: s.enc.b[:0], seen: &seen{}}
	head := heading(version)
	s.sum = firstSum(head)
	n, err := io.WriteString(w, head)
	s.size = int64(n)
	s.enc.value(reflect.ValueOf(&start).Elem())
	return err
}

// flush writes the buffered records as a block.
func (s *segment) flush() error {
	if len(s.enc.b) == 0 {
		return nil
	}
	s.buf.Reset()
	if s.pack == nil {
		s.pack, _ = flate.NewWriter(&s.buf, flate.BestSpeed)
	} else {
		s.pack.Reset(&s.buf)
	}
	plain := uint32(len(s.enc.b))
	if _, err := s.pack.Write(s.enc.b); err != nil {
		return err
	}
	if err := s.pack.Close(); err != nil {
		return err
	}
	s.enc.b = s.enc.b[:0]
	s.sum = chain(s.sum, plain, s.buf.Bytes())
	head := blockHead{uint32(s.buf.Len()), plain, s.sum}
	block, _ := binary.Append(make([]byte, 0, headSize+s.buf.Len()), binary.LittleEndian, head)
	n, err := s.w.Write(append(block, s.buf.Bytes()...))
	s.size += int64(n)
	return err
}

// Reader reads one file.
type Reader struct {
	Start Start
	r     io.Reader
	dec   decoder
	sum   [16]byte
}

// NewReader begins to read a file that this version has written.
func NewReader(r io.Reader, version string) (*Reader, error) {
	head, err := readLine(r)
	if err != nil || !strings.HasPrefix(head, magic+", version ") {
		return nil, ErrNoRecording
	}
	if want := heading(version); head != want {
		trim := func(s string) string { return strings.TrimSpace(strings.TrimPrefix(s, magic+", ")) }
		return nil, &VersionError{trim(head), trim(want)}
	}
	f := &Reader{r: r, sum: firstSum(head), dec: decoder{seen: &seen{}}}
	if err := f.fill(); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrCut
		}
		return nil, err
	}
	f.dec.value(reflect.ValueOf(&f.Start).Elem())
	return f, f.dec.err
}

func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < 200; {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if line = append(line, one[0]); one[0] == '\n' {
			return string(line), nil
		}
	}
	return "", ErrNoRecording
}

// fill reads the next block; [io.EOF]: there is none.
func (f *Reader) fill() error {
	var raw [headSize]byte
	if _, err := io.ReadFull(f.r, raw[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrCut
		}
		return err
	}
	var head blockHead
	if _, err := binary.Decode(raw[:], binary.LittleEndian, &head); err != nil {
		return ErrTampered
	}
	if head.Packed > mostBlock || head.Plain > 4*mostBlock {
		return ErrTampered
	}
	packed, err := io.ReadAll(io.LimitReader(f.r, int64(head.Packed)))
	if err != nil {
		return err
	}
	if len(packed) < int(head.Packed) {
		return ErrCut
	}
	if f.sum = chain(f.sum, head.Plain, packed); f.sum != head.Sum {
		return ErrTampered
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(head.Plain)+1))
	if err != nil || len(plain) != int(head.Plain) {
		return ErrTampered
	}
	f.dec.b = plain
	return nil
}

// Next reads a step; [io.EOF]: that was all. With ErrCut all that came before is whole.
func (f *Reader) Next() (Step, error) {
	for len(f.dec.b) == 0 {
		if err := f.fill(); err != nil {
			return Step{}, err
		}
	}
	var s Step
	decodeStep(&f.dec, &s)
	if f.dec.err != nil {
		return Step{}, fmt.Errorf("%w: %w", ErrTampered, f.dec.err)
	}
	return s, nil
}

func decodeStep(d *decoder, s *Step) { d.value(reflect.ValueOf(s).Elem()) }
