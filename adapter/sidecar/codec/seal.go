package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Heading returns the line that begins a file: what it is, and which version reads it.
func Heading(what, version, format string) string {
	if version == "" {
		version = "(devel)"
	}
	return fmt.Sprintf("%s, version %s, format %s\n", what, strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, version), format)
}

// What is wrong with sealed bytes. Their reader says what to do about it.
var (
	ErrForeign  = errors.New("this is no such file of evoslurmd")
	ErrTampered = errors.New("it was changed after it was written, or is damaged: its checksum does not fit")
	ErrCut      = errors.New("it is cut short")
)

// VersionError reports bytes that another version of Evoslurm has written.
type VersionError struct{ Written, Here string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("it is of %s, and this is %s", e.Written, e.Here)
}

const sealSize = 8 + 16 // a length, and a checksum

// Seal returns a body behind a heading, its length, and a checksum of both.
func Seal(heading string, body []byte) []byte {
	out := make([]byte, 0, len(heading)+sealSize+len(body))
	out = append(out, heading...)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(body)))
	sum := Sum([]byte(heading), body)
	return append(append(out, sum[:]...), body...)
}

// Sum returns a checksum of a, whose length the reader knows, and b.
func Sum(a, b []byte) (sum [16]byte) {
	h := sha256.New()
	h.Write(a)
	h.Write(b)
	copy(sum[:], h.Sum(nil))
	return sum
}

// CheckHeading returns why the first line of a file is not the heading, or nil.
func CheckHeading(heading, line string) error {
	what, _, _ := strings.Cut(heading, ",")
	written, ours := strings.CutPrefix(line, what+", ")
	switch {
	case !ours || !strings.HasPrefix(written, "version "):
		return ErrForeign
	case line == heading:
		return nil
	}
	return &VersionError{strings.TrimSpace(written), strings.TrimSpace(heading[len(what)+2:])}
}

// Open returns the body behind a heading.
func Open(heading string, sealed []byte) ([]byte, error) {
	line, rest, whole := bytes.Cut(sealed, []byte("\n"))
	err := CheckHeading(heading, string(line)+"\n")
	switch {
	case errors.Is(err, ErrForeign):
		return nil, err
	case !whole || err == nil && len(rest) < sealSize:
		return nil, ErrCut
	case err != nil:
		return nil, err
	}
	size, sum, body := binary.LittleEndian.Uint64(rest), rest[8:sealSize], rest[sealSize:]
	if uint64(len(body)) < size {
		return nil, ErrCut
	}
	if is := Sum([]byte(heading), body); uint64(len(body)) > size || !bytes.Equal(is[:], sum) {
		return nil, ErrTampered
	}
	return body, nil
}
