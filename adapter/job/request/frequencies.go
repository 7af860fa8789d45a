package request

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/planner"
)

// A step of a profile may have a CPU frequency, NODES@DURATION:FREQUENCY, which its srun commands ask Slurm for. Plans do
// not depend on it. A Request holds it as srun --cpu-freq takes it: a word, or kHz.

// LowFrequency asks for the lowest frequency of a CPU.
const LowFrequency = "low"

var frequencyWords = []string{LowFrequency, "medium", "high", "highm1"}

const (
	leastKHz = 1_000       // 1 MHz
	mostKHz  = 100_000_000 // 100 GHz
)

var frequencyUnits = map[string]float64{"khz": 1, "mhz": 1e3, "ghz": 1e6} // in kHz

var frequencyNumber = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,6})?)([kmg]hz)$`)

// CheckFrequency returns an error if text is no frequency as a Request holds it.
func CheckFrequency(text string) error {
	if slices.Contains(frequencyWords, text) {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < leastKHz || n > mostKHz || strconv.FormatInt(n, 10) != text {
		return fmt.Errorf("%q is no CPU frequency: want %s, or kHz from %d to %d", legible.Brief(text), strings.Join(frequencyWords, ", "), leastKHz, mostKHz)
	}
	return nil
}

// parseFrequency reads a frequency as a user writes it.
func parseFrequency(text string) (string, error) {
	lower := strings.ToLower(text)
	if slices.Contains(frequencyWords, lower) {
		return lower, nil
	}
	m := frequencyNumber.FindStringSubmatch(lower)
	if m == nil {
		return "", fmt.Errorf("%q is no CPU frequency: want %s, or a number with its unit, as 2.1GHz, 2100MHz, or 2100000kHz", legible.Brief(text), strings.Join(frequencyWords, ", "))
	}
	number, _ := strconv.ParseFloat(m[1], 64)
	kHz := number * frequencyUnits[m[2]]
	whole := math.Round(kHz)
	if math.Abs(kHz-whole) > 1e-3 || whole < leastKHz || whole > mostKHz {
		return "", fmt.Errorf("CPU frequency %s is not in whole kHz from 1MHz to 100GHz", text)
	}
	return strconv.FormatInt(int64(whole), 10), nil
}

// frequencyOf takes the frequency off a step's text; "" if it has none. Colons are in Slurm's durations too, between digits.
func frequencyOf(step string) (plain, frequency string) {
	letter := func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	at := strings.LastIndexByte(step, ':')
	_, duration, found := strings.Cut(step[:max(at, 0)], "@")
	if !found || !strings.ContainsFunc(duration, letter) && !strings.ContainsFunc(step[at:], letter) {
		return step, ""
	}
	return step[:at], step[at+1:]
}

// setProfile reads a profile whose steps may have bounds or frequencies.
func (r *Request) setProfile(text string) error {
	words := strings.Split(text, ",")
	frequencies := make([]string, len(words))
	cuts := make([]int, len(words)) // bytes before each step that are not in the plain text
	given, at, cut := false, 0, 0
	for i, word := range words {
		plain, frequency := frequencyOf(word)
		cuts[i] = cut
		if len(plain) < len(word) {
			var err error
			if frequencies[i], err = parseFrequency(frequency); err != nil {
				return &planner.ParseError{Input: text, Offset: at + len(plain) + 1, Reason: fmt.Sprintf("step %d: %v", i+1, err)}
			}
			given = true
		}
		words[i] = plain
		at, cut = at+len(word)+1, cut+len(word)-len(plain)
	}
	if r.Frequencies = nil; !given {
		return r.setSteps(text)
	}
	plain := strings.Join(words, ",")
	if ranged(plain) || strings.Contains(plain, openTail) {
		return errors.New("a CPU frequency is for a step with a fixed number of nodes: leave it out of a profile with ? or MIN-MAX")
	}
	r.Frequencies = frequencies
	err := r.setSteps(plain)
	if bad, ok := errors.AsType[*planner.ParseError](err); ok {
		step := strings.Count(plain[:min(bad.Offset, len(plain))], ",")
		return &planner.ParseError{Input: text, Offset: bad.Offset + cuts[step], Reason: bad.Reason}
	}
	return err
}

// noFrequency returns an error if a step has a frequency where none is possible.
func noFrequency(text, where string) error {
	for step := range strings.SplitSeq(strings.ReplaceAll(text, "|", ","), ",") {
		if plain, _ := frequencyOf(strings.TrimSpace(step)); len(plain) < len(strings.TrimSpace(step)) {
			return fmt.Errorf("a CPU frequency is for a step of a single --profile: leave it out of %s", where)
		}
	}
	return nil
}

// CheckFrequencies returns an error if the request has frequencies beside what excludes them.
func (r Request) CheckFrequencies() error {
	if r.Frequencies == nil {
		return nil
	}
	with := ""
	switch {
	case len(r.Components) > 0:
		with = "--component"
	case r.Moldable != nil:
		with = "--moldable"
	case r.Malleable != nil:
		with = "--malleable"
	case r.MaxNodes > 0 || r.Tail > 0:
		with = "a claim (--max-nodes)"
	case r.Reached != nil:
		with = "a changed profile"
	}
	if with != "" {
		return fmt.Errorf("a step's CPU frequency and %s exclude each other: leave one of them out", with)
	}
	if len(r.Frequencies) != len(r.Profile) {
		return fmt.Errorf("CPU frequencies of %d steps for a profile with %d", len(r.Frequencies), len(r.Profile))
	}
	return nil
}

// frequenciesField returns the marker's field of the frequencies, or "" for none.
func frequenciesField(all []string) string {
	if all == nil {
		return ""
	}
	return ";h=" + strings.Join(all, ",")
}

// ParseFrequencies reads the frequencies of all steps, between commas; a step without has none between them.
func ParseFrequencies(text string) ([]string, error) {
	if len(text) > MaxSteps*(len(strconv.Itoa(mostKHz))+1) {
		return nil, fmt.Errorf("more than %d CPU frequencies", MaxSteps)
	}
	all := strings.Split(text, ",")
	given := false
	for _, f := range all {
		if f == "" {
			continue
		}
		if err := CheckFrequency(f); err != nil {
			return nil, err
		}
		given = true
	}
	if !given {
		return nil, errors.New("no CPU frequency")
	}
	return all, nil
}

// WithFrequencies returns a profile with its steps' frequencies, in the grammar of --profile; "" if it has none.
func WithFrequencies(p planner.Profile, frequencies []string) string {
	if len(p) != len(frequencies) {
		return ""
	}
	words := make([]string, len(p))
	for i, f := range frequencies {
		words[i] = p[i : i+1].String()
		if kHz, err := strconv.ParseInt(f, 10, 64); err == nil {
			f = strconv.FormatFloat(float64(kHz)/frequencyUnits["ghz"], 'f', -1, 64) + "GHz"
		}
		if f != "" {
			words[i] += ":" + f
		}
	}
	return strings.Join(words, ",")
}

// The variables of a job's environment for the frequency of its present step: what srun reads, and what Evoslurm set it to.
const (
	VarSrunFrequency = "SLURM_CPU_FREQ_REQ"
	VarFrequency     = "EVO_CPU_FREQ"
)

// OwnFrequency reports whether the user, and not Evoslurm, set the frequency for srun in an environment. Slurm writes words
// with a capital.
func OwnFrequency(getenv func(string) string) bool {
	asked := getenv(VarSrunFrequency)
	return asked != "" && !strings.EqualFold(asked, getenv(VarFrequency))
}

// FrequencyVariables returns the variables of a step with a frequency; none for "".
func FrequencyVariables(frequency string) [][2]string {
	if frequency == "" {
		return nil
	}
	return [][2]string{{VarSrunFrequency, frequency}, {VarFrequency, frequency}}
}
