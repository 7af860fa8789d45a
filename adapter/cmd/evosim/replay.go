package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func replayCommand() *cobra.Command {
	var from, until, job, why string
	cmd := &cobra.Command{
		Use:   "replay [--from=TIME] [--until=TIME] [--job=ID | --why=ID] FILE|FOLDER",
		Short: "Replay a recording through the sidecar's core",
		Long: `Replay a recording of evoslurmd (recorder.dir in its configuration) through the sidecar's
decision core: from a file to the last one of the same run, or the newest run of a folder.
If the core decides differently, the command prints the first different effect, with its
time, input and both effects, and exits with 1.

--until stops at a time: 2026-11-22T15:04:05, 15:04:05 of the recording's first day, or
1h30m after its beginning. --from shows and counts only steps from a time on. The replay
then begins with the last file before it that has the core's state, as all files but the
first of a run do, unless the state is too large.

--job shows what concerns a job, as it happens. --why explains in words where a job is at
the end, and the reasons of each decision about it.

An incomplete recording (the sidecar was killed, or still runs) is replayed as far as it is
whole. The command rejects recordings of another version, changed recordings, and other
files.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay(cmd, args[0], from, until, job, why)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "where to begin: a time, or a duration from the beginning")
	cmd.Flags().StringVar(&until, "until", "", "where to stop: a time, or a duration from the beginning")
	cmd.Flags().StringVar(&job, "job", "", "show what concerns this job")
	cmd.Flags().StringVar(&why, "why", "", "explain where this job is and why")
	cmd.MarkFlagsMutuallyExclusive("job", "why")
	return cmd
}

func replay(cmd *cobra.Command, path, from, until, job, why string) error {
	files, err := recorder.Find(path)
	if err != nil {
		return err
	}
	first, err := head(files[0])
	if err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	time.Local = time.FixedZone("", first.Zone) // what people read is in it
	p := recorder.Player{Version: version.Of(linked)}
	if p.Since, err = moment("from", from, first.Begun); err != nil {
		return err
	}
	if p.Until, err = moment("until", until, first.Begun); err != nil {
		return err
	}
	var story recorder.Story
	out := cmd.OutOrStdout()
	if text := job + why; text != "" {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil || id == 0 {
			return fmt.Errorf("invalid job ID %q", text)
		}
		story.Job = slurmctl.JobID(id)
		p.See = func(s recorder.Step) {
			for _, line := range story.See(s) {
				if job != "" {
					fmt.Fprintf(out, "%s  %s\n", s.At.Local().Format("2006-01-02 15:04:05.000"), legible.Printable(line, false))
				}
			}
		}
	}
	err = p.Play(files)
	if errors.Is(err, codec.ErrCut) && p.Steps > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %v; what is whole was replayed\n", err)
		err = nil
	}
	if _, ok := errors.AsType[*recorder.Difference](err); ok {
		return evosim.Failure{Err: fmt.Errorf("the core does something else than is recorded\n%w", err)}
	}
	if err != nil {
		return err
	}
	if p.Steps == 0 && from != "" {
		return fmt.Errorf("--from=%s: the recording ends at %s: name an earlier time", from, p.To.Local().Format(time.DateTime))
	}
	if p.Missing != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %s: replayed on from the recorded state\n", p.Missing)
	}
	if p.Gap != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %s: effects are shown as they were recorded, not replayed\n", p.Gap)
	}
	if why != "" {
		return explain(out, &p, &story, why)
	}
	return conclude(out, &p)
}

// explain writes where a job is at the end of a replay, and why.
func explain(out io.Writer, p *recorder.Player, story *recorder.Story, job string) error {
	var view *msg.View
	if p.Core != nil {
		view = p.Core.View()
	}
	if !story.Why(out, p.To.Local(), view) {
		return fmt.Errorf("the recording knows no job %s until %s", job, p.To.Local().Format(time.DateTime))
	}
	return nil
}

// conclude writes how much was replayed.
func conclude(out io.Writer, p *recorder.Player) error {
	verdict := "the same effects"
	if p.Gap != "" {
		verdict = "read"
	}
	_, err := fmt.Fprintf(out, "%d steps from %s to %s: %s\n", p.Steps, p.From.Local().Format(time.DateTime), p.To.Local().Format(time.DateTime), verdict)
	if err != nil {
		return evosim.Failure{Err: err}
	}
	return nil
}

// head returns the head of a file.
func head(name string) (recorder.Start, error) {
	f, err := os.Open(name)
	if err != nil {
		return recorder.Start{}, err
	}
	defer f.Close()
	r, err := recorder.NewReader(f, version.Of(linked))
	if err != nil {
		return recorder.Start{}, err
	}
	return r.Start, nil
}

// moment returns a time that a user enters, or zero if the text is empty.
func moment(flag, text string, begun time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return begun.Add(d), nil
	}
	begun = begun.Local()
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return time.Date(begun.Year(), begun.Month(), begun.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local), nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s=%s: want a time such as 2026-11-22T15:04:05, 15:04:05, or 1h30m", flag, text)
}
