package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The meanings of a failed command, if its text reveals one. Use errors.Is.
var (
	ErrUnknownJob         = errors.New("unknown job")
	ErrAlreadyDone        = errors.New("job has already ended")
	ErrNotPending         = errors.New("job is not pending")
	ErrDependency         = errors.New("job dependency problem")        // the expander's base job is not running or does not exist
	ErrNodeCount          = errors.New("node count invalid")            // also if a restart of slurmctld lost an expand link
	ErrNodeName           = errors.New("node name invalid")             // also if the batch host would be dropped
	ErrHasSteps           = errors.New("job has steps")                 // cannot merge an expander with a step
	ErrDBIndex            = errors.New("job has no database index yet") // 22.05 without slurmdbd: second resize
	ErrNotSupported       = errors.New("operation not supported by this cluster")
	ErrInvalidAccount     = errors.New("no such account or association")
	ErrAccessDenied       = errors.New("access denied")
	ErrUnknownReservation = errors.New("unknown reservation")
	ErrReservationExists  = errors.New("reservation exists already")
	ErrReservationOverlap = errors.New("reservation overlaps another")
	ErrReservationInUse   = errors.New("reservation in use")
	ErrReservationBegun   = errors.New("reservation has begun")
	ErrNodeConfig         = errors.New("nodes do not satisfy the request")
	ErrNodesBusy          = errors.New("nodes are busy")
	ErrLimit              = errors.New("against a limit or rule of the account, QOS or partition")
	ErrUnspecified        = errors.New("slurmctld gives no reason")
	ErrUnreachable        = errors.New("slurmctld is unreachable")
	ErrNoSlurmdbd         = errors.New("slurmdbd does not answer, without which this Slurm must not resize a job")
)

// NeverMerges reports whether a merge failed for a lasting reason: the expander has steps, merging
// is not permitted, or Slurm gives no reason ("Unspecified error": the expander was allocated
// GRES).
func NeverMerges(err error) bool {
	return errors.Is(err, ErrHasSteps) || errors.Is(err, ErrNotSupported) || errors.Is(err, ErrUnspecified)
}

// phrases lists the texts of slurm_errno.c, 20.11 to 26.05, in lower case.
var phrases = map[error][]string{
	ErrUnknownJob:         {"invalid job id"},
	ErrAlreadyDone:        {"job has already finished", "already completing or completed", "job has already completed"},
	ErrNotPending:         {"job is no longer pending", "job has already started"},
	ErrDependency:         {"job dependency problem"},
	ErrNodeCount:          {"node count specification invalid"},
	ErrNodeName:           {"invalid node name"},
	ErrHasSteps:           {"job step already exists"},
	ErrDBIndex:            {"the db index is being set"},
	ErrNotSupported:       {"requested operation not supported", "requested operation is presently disabled"},
	ErrInvalidAccount:     {"invalid account or account/partition"},
	ErrAccessDenied:       {"access/permission denied", "access denied", "invalid user id"},
	ErrUnknownReservation: {"requested reservation is invalid", "no reservation found"},
	ErrReservationExists:  {"duplicate reservation name"},
	ErrReservationOverlap: {"overlaps with another reservation"},
	ErrReservationInUse:   {"requested reservation is in use"},
	ErrReservationBegun:   {"reservation already started"},
	ErrNodeConfig:         {"requested node configuration is not available"},
	ErrNodesBusy:          {"requested nodes are busy"},
	ErrLimit: {"job violates accounting/qos policy", "requested time limit is invalid", "time limit specification required",
		"invalid account or account/partition combination", "invalid qos specification", "breached requested qos usage threshold",
		"group not permitted to use this partition", "memory required by task is not available", "memory specification can not be satisfied"},
	ErrUnspecified: {"unspecified error"},
	ErrUnreachable: {"unable to contact slurm controller", "connection refused", "connection timed out",
		"socket timed out", "communication connection failure", "standby mode", "message receive failure",
		// 24.11 says the first of updates of jobs and new reservations, for want of a connection or a credential
		"unexpected message received", "protocol authentication error",
		"zero bytes were transmitted", "connection rejected by handler", "shutting down and closing",
		// while Slurm is upgraded: its libraries, its plugins, or its daemon are of another release than the command
		"error while loading shared libraries", "incompatible slurm plugin", "incompatible versions of client and server",
		"protocol version has changed"},
}

// lacks lists the errors of a host without descriptors, processes, or memory for a command, or where the command is
// just being replaced, or that must not change Slurm.
var lacks = []error{ErrFenced, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, fs.ErrNotExist, syscall.ETXTBSY, syscall.ENOEXEC}

// CommandError describes a command that failed.
type CommandError struct {
	Args     []string // the command and its arguments
	ExitCode int      // -1 if it did not start or was killed
	Stderr   string
	Err      error // the system's error

	waiting bool // the command may wait long by design: a timeout does not mean unreachable
}

// Error returns the command, what it printed, and how it ended, on one line.
func (e *CommandError) Error() string {
	var b strings.Builder
	b.WriteString(oneLine(strings.Join(quoteArgs(e.Args), " "), 200))
	if msg := e.Message(); msg != "" {
		b.WriteString(": " + oneLine(msg, 500))
	}
	var exit *exec.ExitError
	if e.Err != nil && !errors.As(e.Err, &exit) {
		b.WriteString(": " + oneLine(e.Err.Error(), 200))
	}
	if e.ExitCode >= 0 {
		fmt.Fprintf(&b, " (exit status %d)", e.ExitCode)
	}
	return b.String()
}

// Unwrap returns the system's error: an *exec.ExitError, context.Canceled, ….
func (e *CommandError) Unwrap() error { return e.Err }

// Is matches the sentinels of this package by what the command printed. A command that timed out
// counts as an unreachable controller, except Allocate, which waits for nodes. A command that this
// host could not start counts as unreachable, too.
func (e *CommandError) Is(target error) bool {
	if target == ErrUnreachable && !e.waiting && errors.Is(e.Err, context.DeadlineExceeded) {
		return true
	}
	if target == ErrUnreachable && slices.ContainsFunc(lacks, func(lack error) bool { return errors.Is(e.Err, lack) }) {
		return true
	}
	text := strings.ToLower(e.Stderr)
	for _, p := range phrases[target] {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// Message returns stderr without the prefixes that repeat the command's name.
func (e *CommandError) Message() string {
	var lines []string
	for line := range strings.Lines(e.Stderr) {
		line = strings.TrimSpace(line)
		if len(e.Args) > 0 {
			line = strings.TrimPrefix(line, e.Args[0]+": ")
		}
		line = strings.TrimPrefix(line, "error: ")
		if line != "" && (len(lines) == 0 || lines[len(lines)-1] != line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// refused returns the error for a command that reported success but did nothing.
func refused(args []string, exit int, stderr, why string) error {
	return &CommandError{Args: args, ExitCode: exit, Stderr: stderr, Err: errors.New(why)}
}

func quoteArgs(args []string) []string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\|") {
			a = strconv.Quote(a)
		}
		quoted[i] = a
	}
	return quoted
}

// oneLine makes text safe to log: no control characters, about n bytes at most.
func oneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
