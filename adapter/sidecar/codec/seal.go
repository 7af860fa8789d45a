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

// What is wrong with sealed bytes. Whoever opens them says what to do about it.
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
	sum := sumOf(heading, body)
	return append(append(out, sum[:]...), body...)
}

func sumOf(heading string, body []byte) (sum [16]byte) {
	h := sha256.New()
	h.Write([]byte(heading))
	h.Write(body)
	copy(sum[:], h.Sum(nil))
	return sum
}

// Open returns the body behind a heading.
func Open(heading string, sealed []byte) ([]byte, error) {
	what, _, _ := strings.Cut(heading, ",")
	line, rest, whole := bytes.Cut(sealed, []byte("\n"))
	switch head := string(line) + "\n"; {
	case !strings.HasPrefix(head, what+", version "):
		return nil, ErrForeign
	case !whole:
		return nil, ErrCut
	case head != heading:
		trim := func(s string) string { return strings.TrimSpace(strings.TrimPrefix(s, what+", ")) }
		return nil, &VersionError{trim(head), trim(heading)}
	case len(rest) < sealSize:
		return nil, ErrCut
	}
	size, sum, body := binary.LittleEndian.Uint64(rest), rest[8:sealSize], rest[sealSize:]
	if uint64(len(body)) < size {
		return nil, ErrCut
	}
	if is := sumOf(heading, body); uint64(len(body)) > size || !bytes.Equal(is[:], sum) {
		return nil, ErrTampered
	}
	return body, nil
}
