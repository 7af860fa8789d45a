package slurmctl

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
)

// table splits what squeue and sinfo print. Job names and comments are free text and may hold
// anything, including newlines, so a random separator, drawn for each call, keeps fields apart. It
// travels in the environment (SQUEUE_FORMAT), which other users cannot read, and not in the
// arguments, which they can. So no text written by a user can hold it.
type table struct {
	sep    string
	fields int
}

// newTable draws a separator for records of n fields.
func newTable(n int) table {
	var nonce [9]byte // 72 bits: unguessable, and short, because it appears 36 times per job
	if _, err := rand.Read(nonce[:]); err != nil {
		panic(err) // crypto/rand never fails on Linux
	}
	return table{sep: "<" + base64.RawURLEncoding.EncodeToString(nonce[:]) + ">", fields: n}
}

// short returns a format for -o: one letter per field, each followed by the separator.
func (t table) short(letters ...string) string {
	var b strings.Builder
	for _, l := range letters {
		b.WriteString("%" + l + t.sep)
	}
	return b.String()
}

// long returns a format for -O: one name per field, each followed by the separator.
func (t table) long(names ...string) string {
	for i, n := range names {
		names[i] = n + ":" + t.sep
	}
	return strings.Join(names, ",")
}

// split returns the records of an output. It returns an error if the output is cut off within a
// record.
func (t table) split(out string) ([][]string, error) {
	cells := strings.Split(out, t.sep)
	last := cells[len(cells)-1]
	cells = cells[:len(cells)-1]
	if last != "" && last != "\n" || len(cells)%t.fields != 0 || len(cells) > 0 && last == "" {
		return nil, fmt.Errorf("output of %d bytes is not whole records of %d fields", len(out), t.fields)
	}
	records := make([][]string, 0, len(cells)/t.fields)
	for i := 0; i < len(cells); i += t.fields {
		record := cells[i : i+t.fields : i+t.fields]
		if i > 0 {
			// the newline that ended the previous record
			first, ok := strings.CutPrefix(record[0], "\n")
			if !ok {
				return nil, fmt.Errorf("record %d does not begin on a line of its own", i/t.fields+1)
			}
			record[0] = first
		}
		compact(record)
		records = append(records, record)
	}
	return records, nil
}

// compact copies a record's fields into memory of their own. A caller that keeps one field then
// does not keep the whole output, which can be megabytes.
func compact(record []string) {
	own := strings.Join(record, "")
	for i, field := range record {
		record[i] = own[:len(field)]
		own = own[len(field):]
	}
}
