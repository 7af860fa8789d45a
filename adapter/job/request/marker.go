package request

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// MaxComment is the longest comment, in bytes, that Slurm accepts.
const MaxComment = 1024

// The marker stands in the comment of a Slurm job that evosbatch submitted:
//
//	evo:v2;p=2@10m,5@30m;x=2;d=merge;b=1790000000;n=n[1-4];i=2;f=123;g=8;u=9f3c2a;s=3@1260@2@4@1790000012;c=the user's own;;
//
// and of a moldable job
//
//	evo:v2;p=4@2h|8@1h10m|16@40m;m=completion;l=121|71|0;k=2;d=merge;;
//
// and of a malleable job
//
//	evo:v2;p=2-4@10m,4-16@30m;z=pow2;t=30;e=amdahl:0.95;d=merge;;
//
// and of a best-effort job
//
//	evo:v2;p=1-64@8h;t=30;y=requeue;d=companion;;
//
// and of a job of coupled codes
//
//	evo:v2;p=6@10m,2@10m;o=ocean:2@20m|atm:4@10m;;
//
// and of a job whose second step has a CPU frequency
//
//	evo:v2;p=2@10m,5@30m;h=,2100000;d=merge;;
//
// Fields are in this order. All except p may be missing, none is empty, and an empty field (;;)
// ends the marker. p is the profile or the alternatives; o the components, whose sum is p; h the CPU
// frequencies of all steps; m which of these is preferred; l the time
// limits of each in minutes (0 if left out); k the one that the job was given; z the sizes that a
// malleable job can use; t the seconds that it needs to give nodes back; e its speed-up; y that
// it is a best-effort job, and what becomes of it when its last nodes are wanted; x the expand limit; d the drive mode; b the user's --begin in Unix seconds; n the user's --nodelist; w the user's --prefer, escaped; a
// the user's --prefer-start, --prefer-waste, or --prefer-near; i and f the step and the first job of a chain; g the claim; u the last change of the request; s
// where the job was then (its step, with which p begins; how many seconds after the job's start
// that step began; the first step's nodes; the most nodes of any past step; and when the job
// began); c the user's own --comment, escaped. If p does not fit, it is the word "script", and the
// profile is in the job script's #EVO lines.
//
// A site's plugins may write before and after the marker: it is found within other text. If they
// remove it, the job's script holds the request: #EVO lines, or the marker itself (ScriptLine),
// which evosbatch writes there on clusters with such plugins. A job of ours without a marker is
// recognised by its begin time, which no stock job has (submit.ParkedUntil). Its script is read,
// once.
//
// Version 1 had no end mark and filled the comment, with the user's own text unescaped up to the
// end; jobs queued with it are still read.
const (
	prefixAny    = "evo:v"
	markerPrefix = "evo:v2;"
	markerEnd    = ";;"
	inScript     = "script"
	fieldOrder   = "pohmlkzteyxdbnwaifgusc"
)

// Marker returns the text that carries r in a Slurm comment, and whether it fits. If not, use
// ScriptMarker.
func (r Request) Marker() (string, bool) {
	text := r.marker(false)
	return text, len(text) <= MaxComment
}

// ScriptMarker is Marker for a profile in the job script's #EVO lines. It fails to fit only if the
// user's own comment is too long.
func (r Request) ScriptMarker() (string, bool) {
	text := r.marker(true)
	return text, len(text) <= MaxComment
}

func (r Request) marker(script bool) string {
	var b strings.Builder
	b.WriteString(markerPrefix)
	if script {
		b.WriteString(inScript)
	} else {
		b.WriteString("p=" + r.profileText() + componentsField(r.Components) + frequenciesField(r.Frequencies))
	}
	if r.Moldable != nil {
		r.Moldable.marker(&b)
	}
	if r.Malleable != nil {
		r.Malleable.marker(&b)
	}
	if r.ExpandLimit != 0 {
		b.WriteString(";x=" + r.ExpandLimit.String())
	}
	if r.Drive != "" {
		b.WriteString(";d=" + string(r.Drive))
	}
	if !r.Begin.IsZero() {
		b.WriteString(";b=" + strconv.FormatInt(r.Begin.Unix(), 10))
	}
	if r.Nodes != "" {
		b.WriteString(";n=" + r.Nodes)
	}
	if r.Prefer != "" {
		b.WriteString(";w=" + escapeComment(r.Prefer))
	}
	b.WriteString(aimField(r.Aim))
	if r.Chain != nil {
		b.WriteString(";i=" + strconv.Itoa(r.Chain.Step))
		if r.Chain.First != 0 {
			b.WriteString(";f=" + strconv.FormatUint(uint64(r.Chain.First), 10))
		}
	}
	if r.MaxNodes != 0 {
		b.WriteString(";g=" + strconv.Itoa(r.MaxNodes))
	}
	if r.Updated != "" {
		b.WriteString(";u=" + r.Updated)
	}
	if r.Reached != nil {
		fmt.Fprintf(&b, ";s=%s", r.Reached.text())
	}
	if r.Comment != "" {
		b.WriteString(";c=" + escapeComment(r.Comment))
	}
	b.WriteString(markerEnd)
	return b.String()
}

// MayBeMarked reports whether a comment may have a marker: ParseMarker finds none in any other.
func MayBeMarked(comment string) bool { return strings.Contains(comment, prefixAny) }

// ParseMarker reads the marker in a job's comment, whatever other text is there. It returns false
// if there is none, and an error for a marker that it cannot read: of a later version, or damaged.
// The first intact marker counts. A Request without a profile means that the job's script holds it:
// see Join. The text may be arbitrary. O(len(comment) × markers in it).
func ParseMarker(comment string) (Request, bool, error) {
	var first error
	for rest := comment; ; {
		at := strings.Index(rest, prefixAny)
		if at < 0 {
			return Request{}, first != nil, first
		}
		rest = rest[at:]
		s, ok, err := parseAt(rest, len(rest) == len(comment))
		if ok && err == nil {
			return s, true, nil
		}
		if ok && first == nil {
			first = err
		}
		rest = rest[len(prefixAny):]
	}
}

// parseAt reads a marker that text begins with; whole says that text is all there is.
func parseAt(text string, whole bool) (Request, bool, error) {
	version, ok := markerVersion(text)
	if !ok {
		return Request{}, false, nil
	}
	_, fields, _ := strings.Cut(text, ";")
	var s Request
	var err error
	switch {
	case version == "2":
		var ended bool
		if fields, _, ended = strings.Cut(fields, markerEnd); !ended {
			err = errors.New("it has no end")
		} else {
			s, err = parseFields(strings.Split(fields, ";"))
		}
	case version == "1" && whole:
		s, err = parseFields(fieldsV1(fields))
	case version == "1":
		return Request{}, false, nil // was never written inside other text
	default:
		return Request{}, true, fmt.Errorf("%w %s: this Evoslurm reads versions 1 and 2 only", ErrVersion, version)
	}
	if err != nil {
		return Request{}, true, fmt.Errorf("damaged marker: %w", err)
	}
	return s, true, nil
}

// ErrVersion is a marker that a later Evoslurm has written.
var ErrVersion = errors.New("marker of version")

// markerVersion returns the digits of a text that begins with "evo:v<digits>;".
func markerVersion(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, prefixAny)
	if !ok {
		return "", false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 || digits > 9 || !strings.HasPrefix(rest[digits:], ";") {
		return "", false
	}
	return rest[:digits], true
}

// fieldsV1 splits a marker of version 1, in which the user's own text may hold
// semicolons.
func fieldsV1(text string) []string {
	if strings.HasPrefix(text, "c=") {
		return []string{text}
	}
	head, own, has := strings.Cut(text, ";c=")
	fields := strings.Split(head, ";")
	if has {
		fields = append(fields, "c="+own)
	}
	return fields
}

func parseFields(fields []string) (Request, error) {
	var s Request
	script, last := false, -1
	for _, field := range fields {
		if field == inScript && last == -1 {
			script, last = true, 0
			continue
		}
		key, value, ok := strings.Cut(field, "=")
		at := strings.Index(fieldOrder, key)
		if !ok || len(key) != 1 || at < 0 {
			return Request{}, fmt.Errorf("unknown field %q", legible.Brief(field))
		}
		if at <= last {
			return Request{}, fmt.Errorf("field %q is repeated or out of order", key)
		}
		last = at
		if err := s.setField(key, value); err != nil {
			return Request{}, fmt.Errorf("field %q: %w", key, err)
		}
	}
	if !script && s.Profile == nil {
		return Request{}, errors.New("no profile")
	}
	if err := errors.Join(s.settle(), s.Settle()); err != nil {
		return Request{}, err
	}
	return s, s.agrees()
}

func (r *Request) setField(key, value string) (err error) {
	switch key {
	case "p":
		if !strings.Contains(value, "|") {
			err = r.setSteps(value)
			break
		}
		var all []planner.Profile
		if all, err = ParseAlternatives(value); err == nil {
			r.setAlternatives(all)
		}
	case "o":
		r.Components, err = parseComponents(value)
	case "h":
		r.Frequencies, err = ParseFrequencies(value)
	case "m", "l", "k":
		if r.Moldable == nil {
			if r.Moldable = new(Moldable); r.Profile != nil { // a single alternative
				r.Moldable.Alternatives = []planner.Profile{r.Profile}
			}
		}
		err = r.Moldable.setField(key, value)
	case "z", "t", "e", "y":
		err = r.malleability().setField(key, value)
	case "x":
		r.ExpandLimit, err = planner.ParseExpandLimit(value)
	case "d":
		r.Drive, err = drivemode.Parse(value)
	case "b":
		var unix int64
		if unix, err = parseNumber(value, math.MaxInt64>>16); err == nil {
			r.Begin = time.Unix(unix, 0)
		}
	case "n":
		if _, err = slurmctl.CountNodes(value); err == nil && value != "" {
			r.Nodes = value
		}
	case "w":
		if r.Prefer, err = unescapeComment(value); err == nil {
			err = r.CheckPrefer()
		}
	case "a":
		r.Aim, err = planner.ParseAim(value)
	case "i":
		var step int64
		if step, err = parseNumber(value, math.MaxInt32); err == nil {
			r.Chain = &ChainLink{Step: int(step)}
		}
	case "f":
		var first int64
		if first, err = parseNumber(value, math.MaxUint32); err == nil {
			if r.Chain == nil {
				return errors.New("the first job of a chain, but no step")
			}
			r.Chain.First = uint32(first)
		}
	case "g":
		r.MaxNodes, err = parseClaim(value)
	case "u":
		r.Updated, err = value, CheckChange(value)
	case "s":
		r.Reached, err = parseReached(value)
	case "c":
		r.Comment, err = unescapeComment(value)
	}
	return err
}

// agrees sees that the parts of a request agree.
func (r Request) agrees() error {
	if r.Reached != nil && r.Moldable != nil {
		return errors.New("alternatives of a job that has run: it runs with one of them")
	}
	return errors.Join(r.checkChain(), r.CheckPrefer(), r.CheckAim(), r.CheckComponents(), r.CheckFrequencies(), r.CheckBestEffort(), CheckSteps(r.Whole()))
}

// CheckPrefer returns an error for features that cannot be preferred.
func (r Request) CheckPrefer() error {
	if _, err := slurmctl.ParsePrefer(r.Prefer); err != nil {
		return err
	}
	if r.Prefer != "" && r.MaxNodes > 0 {
		return fmt.Errorf("--prefer=%s: a job with a claim (--max-nodes) may have any nodes at any time; leave one of them out", legible.Brief(r.Prefer))
	}
	return nil
}

// checkChain sees that the parts of a chain's link agree.
func (r Request) checkChain() error {
	if r.Chain == nil {
		return nil
	}
	if !r.Drive.Means().StepsAreJobs {
		return errors.New("a chain's step without drive mode chain")
	}
	if r.Profile != nil && r.Chain.Step > len(r.Profile) {
		return fmt.Errorf("step %d of a profile with %d", r.Chain.Step, len(r.Profile))
	}
	return nil
}

// CheckLinks returns an error if alternatives of a chain differ in how many jobs they need.
func (r Request) CheckLinks() error {
	if !r.Drive.Means().StepsAreJobs || r.Moldable == nil {
		return nil
	}
	first := r.Moldable.Alternatives[0]
	for k, p := range r.Moldable.Alternatives {
		if len(p) != len(first) {
			return fmt.Errorf("--drive=chain: every step is a Slurm job, so all alternatives need as many steps as the first: %d, not the %d of alternative %d",
				len(first), len(p), k+1)
		}
	}
	return nil
}

// parseNumber reads a decimal number from 1 to most, written in one way only.
func parseNumber(text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is no number from 1 to %d", legible.Brief(text), most)
	}
	return n, nil
}

// escapeComment keeps the user's comment on one line of valid UTF-8, and in one field:
// other bytes, semicolons and the percent sign become %XX.
func escapeComment(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '%' || r == ';' || r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			for _, c := range []byte(text[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

func unescapeComment(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", errors.New("cut in the middle of an escaped byte")
		}
		c, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q is no escaped byte", text[i:i+3])
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}
