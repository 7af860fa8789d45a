package slurmctl

import (
	"crypto/rand"
	"encoding/base64"
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
