package controller

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Besides the database there are two files. One, mapped into memory, says which job is being
// handled: the kernel keeps it when the process panics, is killed, or runs out of memory, and
// writing to it costs as much as writing to any memory. The other lists the jobs that are set
// aside, one per line, for this version of the sidecar: another version may have the fault fixed.
//
// A panic proves which job was at fault. So does a kill while a job was handled for the first time.
// For a job that was handled before, one kill proves nothing (an administrator's, or the kernel's
// for another process, may come at any time): it is set aside the second time.

const (
	handlingSize = 128
	panickedAt   = 16 // behind core.Handling: 1 once the core has panicked
	bootAt       = 32 // which boot of the machine wrote it: older contents were lost with the memory
)

// handling is the mapped file.
type handling struct {
	memory []byte
	aside  string // the file of jobs that are set aside
}

// openHandling maps the file and leaves in it what the last life has written.
func openHandling(database string) (*handling, error) {
	f, err := os.OpenFile(database+".handling", os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the administrator names the database
	if err == nil {
		defer f.Close()
		err = lengthen(f)
	}
	h := &handling{aside: database + ".aside"}
	if err == nil {
		h.memory, err = syscall.Mmap(int(f.Fd()), 0, handlingSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, fmt.Errorf("the file that says which job is handled: %w", err)
	}
	return h, nil
}

// lengthen makes the file as long as it has to be, without a hole that a full disk could not fill
// later.
func lengthen(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if missing := handlingSize - info.Size(); missing > 0 {
		_, err = f.WriteAt(make([]byte, missing), info.Size())
	}
	return err
}

// note returns where the core writes which job it is handling.
func (h *handling) note() *msg.Handling { return (*msg.Handling)(h.memory) }

// panicked notes that the core has panicked.
func (h *handling) panicked() { h.memory[panickedAt] = 1 }

// begin begins a life: no job is handled.
func (h *handling) begin() {
	clear(h.memory)
	copy(h.memory[bootAt:], boot())
}

// close ends it, in order.
func (h *handling) close() {
	h.note().Done()
	_ = syscall.Munmap(h.memory) // the process is about to end
}

// boot names the present boot of the machine.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// asideLine is a job that was at hand when a life of the sidecar ended.
type asideLine struct {
	Job       slurmctl.JobID `json:"job"`
	Submitted time.Time      `json:"submitted"`
	Version   string         `json:"version"`
	At        time.Time      `json:"at"`
	Why       string         `json:"why"`
	Doubt     bool           `json:"doubt,omitempty"` // handled until it happens again
}

// ended finds out whose handling ended the last life, if any, and adds that job to the list. It
// returns the jobs that are set aside, and the doubtful one, or 0.
func (h *handling) ended(version string, now time.Time, log *logrus.Logger) (all []msg.Aside, doubt slurmctl.JobID, err error) {
	lines, err := h.lines(version)
	if err != nil {
		return nil, 0, err
	}
	if l, found := h.last(version, now); found {
		for _, before := range lines {
			l.Doubt = l.Doubt && (before.Job != l.Job || !before.Submitted.Equal(l.Submitted))
		}
		if lines = append(lines, l); l.Doubt {
			doubt = l.Job
		}
		if err := h.add(l); err != nil {
			return nil, 0, err
		}
		entry := log.WithField("job", l.Job)
		if l.Doubt {
			entry.Error("the sidecar ended while it handled this job: if that happens again the job is set aside")
		} else {
			entry.Error("this job is set aside, " + l.Why + ": see " + h.aside)
		}
	}
	for _, l := range lines {
		if !l.Doubt {
			all = append(all, msg.Aside{Job: l.Job, Submitted: l.Submitted, Why: l.Why})
		}
	}
	return all, doubt, nil
}

// last returns which job was handled as the life before ended.
func (h *handling) last(version string, now time.Time) (asideLine, bool) {
	id, submitted, stage := h.note().At()
	before := string(bytes.TrimRight(h.memory[bootAt:], "\x00"))
	if id == 0 || before != boot() {
		return asideLine{}, false
	}
	l := asideLine{Job: id, Submitted: submitted, Version: version, At: now.Truncate(time.Second), Why: "the sidecar was killed while it handled it"}
	panicked := h.memory[panickedAt] != 0
	if panicked {
		l.Why = "the sidecar panicked while it handled it"
	}
	l.Doubt = stage == msg.Guessed || stage == msg.Again && !panicked
	return l, true
}

// lines reads the lines of this version.
func (h *handling) lines(version string) (all []asideLine, err error) {
	f, err := os.Open(h.aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("jobs that are set aside: %w", err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		var l asideLine
		if json.Unmarshal(scanner.Bytes(), &l) == nil && l.Version == version { // an administrator may have edited it
			all = append(all, l)
		}
	}
	return all, scanner.Err()
}

// add adds a line to the list.
func (h *handling) add(l asideLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(h.aside, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("jobs that are set aside: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}
