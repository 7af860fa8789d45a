package slurmctl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// rows reads the records of a table while a command prints them. It keeps no more of the output than one record, and
// what came with its end. Text that is not whole records is an error, which [rows.close] returns at the latest.
type rows struct {
	sep    []byte
	fields int
	each   func(fields [][]byte) error // the fields are valid only until it returns

	rest  []byte // what has come of the next record, with the newline before it
	ends  []int  // in rest, where the separators of its fields begin
	found [][]byte
	at    int // how far rest was searched
	count int // records read
	bytes int
	err   error
}

func newRows(t table, each func(fields [][]byte) error) *rows {
	return &rows{sep: []byte(t.sep), fields: t.fields, each: each, found: make([][]byte, t.fields)}
}

// Write takes the next part of the output. It never fails, so that the command can end by itself.
func (r *rows) Write(p []byte) (int, error) {
	r.bytes += len(p)
	if r.err == nil {
		r.rest = append(r.rest, p...)
		r.err = r.read()
	}
	if r.err != nil {
		r.rest = nil
	}
	return len(p), nil
}

// read reads the whole records that have come.
func (r *rows) read() error {
	begin := 0 // of the record that is read, in rest
	for {
		end := r.field(begin)
		if end < 0 {
			break
		}
		r.ends = append(r.ends, end)
		r.at = end + len(r.sep)
		if len(r.ends) < r.fields {
			continue
		}
		if err := r.record(begin); err != nil {
			return err
		}
		begin, r.ends = r.at, r.ends[:0]
	}
	r.rest = r.rest[:copy(r.rest, r.rest[begin:])]
	r.at -= begin
	for i := range r.ends {
		r.ends[i] -= begin
	}
	return nil
}

// field returns where the next separator begins, or -1 if it has not come yet. A byte is found faster than a text.
func (r *rows) field(begin int) int {
	for at := max(r.at, begin); ; at++ {
		next := bytes.IndexByte(r.rest[at:], r.sep[0])
		if next < 0 {
			r.at = len(r.rest)
			return -1
		}
		at += next
		if tail := r.rest[at:]; len(tail) < len(r.sep) {
			r.at = at // its end has not come
			return -1
		} else if bytes.HasPrefix(tail, r.sep) {
			return at
		}
	}
}

// record passes on the record that begins there.
func (r *rows) record(begin int) error {
	if r.count > 0 {
		if r.rest[begin] != '\n' { // not before a field: a separator does not begin with a newline
			return fmt.Errorf("record %d does not begin on a line of its own", r.count+1)
		}
		begin++
	}
	for i, end := range r.ends {
		r.found[i] = r.rest[begin:end:end]
		begin = end + len(r.sep)
	}
	r.count++
	return r.each(r.found)
}

// close returns what was wrong with the output, after its end.
func (r *rows) close() error {
	last := string(r.rest)
	if r.err == nil && (len(r.ends) > 0 || last != "\n" && (last != "" || r.count > 0)) {
		r.err = fmt.Errorf("output of %d bytes is not whole records of %d fields", r.bytes, r.fields)
	}
	return r.err
}

// kept holds the texts and lists of nodes that jobs share: most have the same few partitions, users, and reasons, and a
// job that has not changed has the same values as in the last reading.
type kept struct {
	texts, oldTexts map[string]string
	lists, oldLists map[string][]string
	last            Job // the job before, whose own texts the next one may have, too
	jobs            int // read so far; at first, how many the last reading had
}

// sharedBytes is the longest text that jobs share, except lists of nodes.
const sharedBytes = 64

// next returns what a further reading can share with this one. What only an older reading had is dropped.
func (k *kept) next() *kept {
	if k == nil {
		return &kept{texts: map[string]string{}, lists: map[string][]string{}}
	}
	return &kept{texts: make(map[string]string, len(k.texts)), lists: make(map[string][]string, len(k.lists)),
		oldTexts: k.texts, oldLists: k.lists, jobs: k.jobs}
}

// done drops what is needed only while jobs are read.
func (k *kept) done(jobs int) *kept {
	k.oldTexts, k.oldLists, k.last, k.jobs = nil, nil, Job{}, jobs
	return k
}

// text returns a text that many jobs have, or "" for a placeholder of an absent one.
func (k *kept) text(b []byte) string {
	switch {
	case absent(b):
		return ""
	case len(b) > sharedBytes:
		return string(b)
	}
	s, ok := k.texts[string(b)]
	if !ok {
		if s, ok = k.oldTexts[string(b)]; !ok {
			s = string(b)
		}
		k.texts[s] = s
	}
	return s
}

// verbatim returns a text as it is, without placeholders.
func (k *kept) verbatim(b []byte, before string) string {
	if string(b) == before {
		return before
	}
	return string(b)
}

// own returns a text that few jobs have: perhaps the job before.
func (k *kept) own(b []byte, before string) string {
	switch {
	case absent(b):
		return ""
	}
	return k.verbatim(b, before)
}

// absent does for bytes what text does.
func absent(b []byte) bool { return len(b) == 0 || string(b) == "(null)" }

// nodes returns ExpandNodes's list, which jobs share. Callers must not change it.
func (k *kept) nodes(b []byte) ([]string, error) {
	if absent(b) {
		return nil, nil
	}
	list, ok := k.lists[string(b)]
	if !ok {
		if list, ok = k.oldLists[string(b)]; !ok {
			var err error
			if list, err = ExpandNodes(string(b)); err != nil {
				return nil, err
			}
			list = slices.Clip(list)
		}
		k.lists[string(b)] = list
	}
	return list, nil
}

// number reads a decimal number of at most 18 digits, without a string for it.
func number(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(b) > 0 && len(b) <= 18
}

// split returns the records of an output. It returns an error if the output is cut off within a
// record.
func (t table) split(out string) ([][]string, error) {
	var all [][]string
	r := newRows(t, func(fields [][]byte) error {
		// One memory for all fields of a record: a caller that keeps one field then does not keep the whole output.
		own := string(bytes.Join(fields, nil))
		record := make([]string, len(fields))
		for i, field := range fields {
			record[i], own = own[:len(field)], own[len(field):]
		}
		all = append(all, record)
		return nil
	})
	_, _ = strings.NewReader(out).WriteTo(r)
	if err := r.close(); err != nil {
		return nil, err
	}
	return all, nil
}
