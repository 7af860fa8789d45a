package recorder

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
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

const (
	magic     = "evoslurm recording"
	blockSize = 256 << 10 // of records, before they are compressed
	mostBlock = 64 << 20  // compressed, that a reader takes
	mostPlain = 4 * mostBlock
)

func heading(version string) string { return codec.Heading(magic, version, coded.Format()) }

// A block is the length of its compressed records, a checksum over the previous block and this one, and the records.
type blockHead struct {
	Packed uint32
	Sum    [16]byte
}

const headSize = 4 + 16

// segment writes one file.
type segment struct {
	w    io.Writer
	enc  *codec.Encoder
	sum  [16]byte
	size int64
	pack *flate.Writer
	buf  bytes.Buffer

	rewrite func(string) string // returns what to write instead of a text; nil: the text
}

func (s *segment) begin(w io.Writer, version string, start Start) error {
	s.w, s.enc = w, coded.Encoder(nil, &seen{})
	s.enc.Rewrite = s.rewrite
	head := heading(version)
	s.sum = codec.Sum(nil, []byte(head))
	n, err := io.WriteString(w, head)
	s.size = int64(n)
	codec.Write(s.enc, &start)
	return err
}

// flush writes the buffered records as a block.
func (s *segment) flush() error {
	if s.enc == nil || len(s.enc.B) == 0 {
		return nil
	}
	s.buf.Reset()
	if s.pack == nil {
		s.pack, _ = flate.NewWriter(&s.buf, flate.BestSpeed)
	} else {
		s.pack.Reset(&s.buf)
	}
	if _, err := s.pack.Write(s.enc.B); err != nil {
		return err
	}
	if err := s.pack.Close(); err != nil {
		return err
	}
	s.enc.B = s.enc.B[:0]
	s.sum = codec.Sum(s.sum[:], s.buf.Bytes())
	head := blockHead{uint32(s.buf.Len()), s.sum}
	block, _ := binary.Append(make([]byte, 0, headSize+s.buf.Len()), binary.LittleEndian, head)
	n, err := s.w.Write(append(block, s.buf.Bytes()...))
	s.size += int64(n)
	return err
}

// Reader reads one file.
type Reader struct {
	Start Start
	r     *bufio.Reader
	dec   *codec.Decoder
	sum   [16]byte
}

// NewReader begins to read a file that this version has written.
func NewReader(r io.Reader, version string) (*Reader, error) {
	buffered := bufio.NewReader(r)
	line, err := buffered.ReadSlice('\n') // of a bounded length
	if err == nil {
		err = codec.CheckHeading(heading(version), string(line))
	}
	var other *codec.VersionError
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("cannot read the recording: %w; replay it with the evosim of that version", err)
	case err != nil:
		return nil, fmt.Errorf("%w: name a recording", codec.ErrForeign)
	}
	f := &Reader{r: buffered, sum: codec.Sum(nil, line), dec: coded.Decoder(nil, &seen{})}
	if err := f.fill(); err != nil {
		if errors.Is(err, io.EOF) {
			err = codec.ErrCut
		}
		return nil, err
	}
	codec.Read(f.dec, &f.Start)
	return f, f.dec.Err()
}

// fill reads the next block; [io.EOF]: there is none.
func (f *Reader) fill() error {
	var raw [headSize]byte
	if _, err := io.ReadFull(f.r, raw[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return codec.ErrCut
		}
		return err
	}
	var head blockHead
	if _, err := binary.Decode(raw[:], binary.LittleEndian, &head); err != nil {
		return codec.ErrTampered
	}
	if head.Packed > mostBlock {
		return codec.ErrTampered
	}
	packed, err := io.ReadAll(io.LimitReader(f.r, int64(head.Packed)))
	if err != nil {
		return err
	}
	if len(packed) < int(head.Packed) {
		return codec.ErrCut
	}
	if f.sum = codec.Sum(f.sum[:], packed); f.sum != head.Sum {
		return codec.ErrTampered
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), mostPlain+1))
	if err != nil || len(plain) > mostPlain {
		return codec.ErrTampered
	}
	f.dec.B = plain
	return nil
}

// Next reads a step; [io.EOF]: that was all. With codec.ErrCut all that came before is whole.
func (f *Reader) Next() (Step, error) {
	for len(f.dec.B) == 0 {
		if err := f.fill(); err != nil {
			return Step{}, err
		}
	}
	var s Step
	codec.Read(f.dec, &s)
	if err := f.dec.Err(); err != nil {
		return Step{}, fmt.Errorf("%w: %w", codec.ErrTampered, err)
	}
	return s, nil
}
