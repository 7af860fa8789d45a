package bag

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How tasks are checkpointed.
const (
	KeepNone     = "none"     // not: a task may go on until its node is given back
	KeepDemand   = "demand"   // when its node is wanted
	KeepPeriodic = "periodic" // every so often
)

// Keeping says how tasks are checkpointed.
type Keeping struct {
	Kind    string        `json:"kind"`
	Period  time.Duration `json:"period,omitempty"`
	Signal  string        `json:"signal"`            // that asks a task for a checkpoint
	Command []string      `json:"command,omitempty"` // that makes one, instead of the signal
	Restart []string      `json:"restart,omitempty"` // that goes on from one, instead of the task's command
	Launch  []string      `json:"launch,omitempty"`  // before the task's command
	Folder  bool          `json:"folder,omitempty"`  // the checkpoint is a folder, which these commands expect
}

// Words takes a command apart at its spaces. Quotes keep spaces; no shell is involved.
func Words(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	in := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case strings.ContainsRune(" \t\n", r):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("%q has no second %c", text, quote)
	case in:
		words = append(words, word.String())
	case len(words) == 0:
		return nil, errors.New("no command")
	}
	return words, nil
}

// fill replaces placeholders in the words of a command.
func fill(words []string, pairs ...string) []string {
	r := strings.NewReplacer(pairs...)
	var all []string
	for _, w := range words {
		all = append(all, r.Replace(w))
	}
	return all
}

// argv returns the command that runs a task.
func (s Setup) argv(o order) []string {
	if o.ID == collectID {
		return fill(s.Collect, "{dir}", s.Dir)
	}
	dir := s.saved(o.ID)
	if o.Saved && s.Keep.Restart != nil {
		return fill(s.Keep.Restart, "{}", string(o.Text), "{dir}", dir)
	}
	named := strings.Contains(strings.Join(s.Command, "\x00"), "{}")
	words := fill(s.Command, "{}", string(o.Text))
	if !named {
		words = append(words, string(o.Text))
	}
	return append(fill(s.Keep.Launch, "{dir}", dir), words...)
}

// environ returns what a task finds in its environment.
func (s Setup) environ(o order) []string {
	env := []string{"EVO_BAG=" + s.Dir, "EVO_TASK=" + string(o.Text), "EVO_TASK_ID=" + strconv.Itoa(o.ID), "EVO_RESTART="}
	if s.Keep.Kind != KeepNone {
		env = append(env, "EVO_CHECKPOINT="+s.saved(o.ID))
	}
	if o.Saved {
		env[3] += "1"
	}
	return env
}

// kept reports whether a task has left a checkpoint. A folder was made for it, in which a launcher may have hidden files.
func (s Setup) kept(id int) bool {
	info, err := os.Lstat(s.saved(id))
	if err != nil || !info.IsDir() {
		return err == nil
	}
	f, err := os.Open(s.saved(id))
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(100)
	return slices.ContainsFunc(names, func(name string) bool { return name[0] != '.' })
}

// partSuffix marks the output of a task before its checkpoint.
const partSuffix = ".part"

// CheckOutput refuses a pattern of outputs that tasks would share.
func CheckOutput(option, pattern string) error {
	if !strings.Contains(pattern, "%a") {
		return fmt.Errorf("--%s=%s: all tasks would write to it: name each task's file by %%a, its ID", option, pattern)
	}
	if strings.Contains(filepath.Base(pattern), "%a") {
		return nil
	}
	return fmt.Errorf("--%s=%s: only the file's name may have %%a, the task's ID", option, pattern)
}
