package slurmctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Queue is a squeue as a user runs it, with the user's own rights, environment, and options, and
// with a format in which the caller fills some places.
type Queue struct {
	Options []string    // squeue's options, each --name or --name=value; no formats, repetition, or headings
	Format  QueueFormat // what to print for each job or step
	Steps   *string     // value of --steps; nil for jobs
	Header  bool
}

// QueueLine is a line from squeue. It is complete even if the job's name has newlines.
type QueueLine struct {
	Job   JobID    // 0 for the headings
	Parts []string // the text around the places of Format.Own, one more than these
}

// QueueFormat is a squeue format with places in it.
type QueueFormat struct {
	Own   []OwnField // the places
	long  bool
	parts []string // squeue's own format around the places, one more than these
}

// OwnField is a place in a format, written like squeue's own fields.
type OwnField struct {
	Name   string
	Width  int // 0 for the width of the text
	Right  bool
	Suffix string
}

// Text returns the filled place. It cuts or pads by bytes, as squeue does, but never cuts within a
// character.
func (f OwnField) Text(text string) string {
	if f.Width > 0 && len(text) > f.Width {
		text = strings.ToValidUTF8(text[:f.Width], "")
	}
	pad := strings.Repeat(" ", max(0, f.Width-len(text)))
	if f.Right {
		return pad + text + f.Suffix
	}
	return text + pad + f.Suffix
}

// Letters of squeue -o for "%all".
const (
	jobLetters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	stepLetters = "bijluAMNPSU"
)

// ParseQueueFormat reads a squeue --format in which %[[.]size]{name} is a place.
func ParseQueueFormat(text string, steps bool) (QueueFormat, error) {
	if strings.EqualFold(text, "%all") {
		letters := jobLetters
		if steps {
			letters = stepLetters
		}
		text = "%" + strings.Join(strings.Split(letters, ""), "|%")
	}
	f := QueueFormat{parts: []string{""}}
	last := &f.parts[0]
	for i, token := range strings.Split(text, "%") {
		if i == 0 {
			*last += token // before the first field
			continue
		}
		size, rest, ours := strings.Cut(token, "{")
		if ours = ours && strings.Trim(size, ".0123456789") == ""; !ours {
			switch {
			case token == "": // squeue also reads %% as one
			case strings.Trim(token, ".0123456789") == "":
				return f, fmt.Errorf("format: %%%s is a size without a letter", token)
			default:
				*last += "%" + token
			}
			continue
		}
		name, suffix, closed := strings.Cut(rest, "}")
		if !closed {
			return f, fmt.Errorf("format %q: { without }", oneLine(token, 40))
		}
		own, err := ownField(name, size, suffix)
		if err != nil {
			return f, err
		}
		f.Own, f.parts = append(f.Own, own), append(f.parts, "")
		last = &f.parts[len(f.parts)-1]
	}
	return f, nil
}

// ParseLongQueueFormat reads a squeue --Format in which a name of the caller's is a place.
func ParseLongQueueFormat(text string, isOwn func(name string) bool) (QueueFormat, error) {
	f := QueueFormat{long: true}
	var part []string
	flush := func() {
		f.parts = append(f.parts, strings.Join(part, ","))
		part = nil
	}
	for token := range strings.SplitSeq(text, ",") {
		name, size, sized := strings.Cut(token, ":")
		switch {
		case token == "": // strtok skips it
		case !isOwn(name):
			part = append(part, token)
		default:
			if !sized {
				size = "20" // squeue's default
			}
			digits := strings.TrimPrefix(size, ".")
			suffix := strings.TrimLeft(digits, "0123456789")
			own, err := ownField(name, strings.TrimSuffix(size, suffix), suffix)
			if err != nil {
				return f, err
			}
			f.Own = append(f.Own, own)
			flush()
		}
	}
	flush()
	return f, nil
}

func ownField(name, size, suffix string) (OwnField, error) {
	digits, right := strings.CutPrefix(size, ".")
	width, err := 0, error(nil)
	if digits != "" {
		width, err = strconv.Atoi(digits)
	}
	if err != nil || width > 1<<16 {
		return OwnField{}, fmt.Errorf("format: size %q of %s", oneLine(size, 20), oneLine(name, 40))
	}
	return OwnField{Name: name, Width: width, Right: right, Suffix: suffix}, nil
}

// with returns the format with a job ID in front and a separator after each part. It also returns
// which parts squeue prints: a long format cannot print an empty part.
func (f QueueFormat) with(sep string, steps bool) (format string, printed []bool) {
	var b strings.Builder
	id, longID := "%A", "JobID"
	if steps {
		id, longID = "%i", "StepID"
	}
	printed = make([]bool, len(f.parts))
	if !f.long {
		b.WriteString(id + sep)
		for i, p := range f.parts {
			printed[i] = true
			b.WriteString(p + sep)
		}
		return b.String(), printed
	}
	b.WriteString(longID + ":" + sep)
	for i, p := range f.parts {
		if p == "" {
			continue
		}
		printed[i] = true
		if field := p[strings.LastIndexByte(p, ',')+1:]; !strings.Contains(field, ":") {
			p += ":20" // squeue's default size
		}
		b.WriteString("," + p + sep)
	}
	return b.String(), printed
}

// QueueLines runs squeue. It also returns what squeue prints on stderr, e.g. about an unknown
// field.
func (c *Client) QueueLines(ctx context.Context, q Queue) (lines []QueueLine, said string, err error) {
	t := newTable(0)
	for strings.Contains(t.sep, "C") { // with a C anywhere in the format, squeue queries more
		t = newTable(0)
	}
	format, printed := q.Format.with(t.sep, q.Steps != nil)
	t.fields = 1
	for _, p := range printed {
		if p {
			t.fields++
		}
	}
	args := append([]string{}, q.Options...)
	if !q.Header {
		args = append(args, "--noheader")
	}
	cmd := command{name: "squeue", ofUser: true}
	name := "--format="
	if q.Format.long {
		name = "--Format="
	}
	if q.Steps != nil {
		if *q.Steps != "" {
			args = append(args, "--steps="+*q.Steps)
		} else {
			args = append(args, "--steps")
		}
	}
	cmd.args = append(args, name+format)
	out, said, err := c.run(ctx, cmd)
	if err != nil {
		return nil, "", err
	}
	if c.Remote != "" && q.Header {
		out = strings.TrimPrefix(out, "CLUSTER: "+c.Remote+"\n")
	}
	records, err := t.split(out)
	if err != nil {
		return nil, said, fmt.Errorf("squeue: %w", err)
	}
	for i, r := range records {
		word, _, _ := strings.Cut(r[0], ".")
		id, err := parseID(word)
		if err != nil && (i > 0 || !q.Header) {
			if q.Steps != nil {
				continue // part of an array or heterogeneous job: never an evolving job
			}
			return nil, said, fmt.Errorf("squeue: invalid job ID %q", oneLine(r[0], 20))
		}
		line := QueueLine{Job: id, Parts: make([]string, len(printed))}
		k := 1
		for p := range printed {
			if printed[p] {
				line.Parts[p] = r[k]
				k++
			}
		}
		lines = append(lines, line)
	}
	return lines, said, nil
}

// QueueJSON runs squeue --json and returns its document and the jobs in it, by ID. A value other
// than "" is passed to --json, which accepts one since 23.02. The caller fills the document's key
// jobs.
func (c *Client) QueueJSON(ctx context.Context, options []string, value string) (document map[string]json.RawMessage, jobs []QueueJob, err error) {
	word := "--json"
	if value != "" {
		word += "=" + value
	}
	out, _, err := c.run(ctx, command{name: "squeue", args: append(append([]string{}, options...), word), ofUser: true})
	if err != nil {
		return nil, nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		return nil, nil, fmt.Errorf("squeue --json: %w", err)
	}
	if err := json.Unmarshal(document["jobs"], &list); err != nil {
		return nil, nil, fmt.Errorf("squeue --json: jobs: %w", err)
	}
	for _, text := range list {
		var key struct {
			ID JobID `json:"job_id"`
		}
		if err := json.Unmarshal(text, &key); err != nil {
			return nil, nil, fmt.Errorf("squeue --json: job_id: %w", err)
		}
		jobs = append(jobs, QueueJob{key.ID, text})
	}
	return document, jobs, nil
}

// QueueJob is a job in squeue's JSON.
type QueueJob struct {
	ID   JobID
	JSON json.RawMessage // an object
}
