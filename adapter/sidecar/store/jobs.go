package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// The rows, see package row.
type (
	State = row.State
	Job   = row.Job
)

// The states of a job.
const (
	Queued   = row.Queued
	Starting = row.Starting
	Running  = row.Running
	Waiting  = row.Waiting
	Ended    = row.Ended
)

const jobColumns = `id, slurm_id, submitted, name, user, uid, gid, account, qos, partition, expand_limit, drive, begin,
	state, step, started, step_started, step_ended, ended, end_state, batch_host, suspended, changes, behind, claim, offers, progress, held_idle, begun, change_open, prefer, components, aim, aim_since, aim_start, guess, array, task, reservation, growing, frequencies, restarts, losses`

// AddJob writes a new job with its requested profile, and sets its ID if it has none.
func (s *Store) AddJob(ctx context.Context, j *Job) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		added := tx.QueryRowContext(ctx, `INSERT INTO jobs (`+jobColumns+`)
			VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			j.ID, j.SlurmID, unix(j.Submitted), j.Name, j.User, j.UID, j.GID, j.Account, j.QOS, j.Partition,
			float64(j.ExpandLimit), j.Drive, unix(j.Begin), j.State, j.Step, unix(j.Started),
			unix(j.StepStarted), unix(j.StepEnded), unix(j.Ended), j.EndState, j.BatchHost, int64(j.Suspended/time.Second), changesText(j.Changes), unix(j.Behind), j.Claim, offersText(j.Offers), progressText(j.Progress), j.HeldIdle, j.Begun, isOpen(j), j.Prefer, componentsText(j.Components), j.Aim.String(), j.AimSince, j.AimStart, j.Guess, j.Array, j.Task, j.Reservation, growingText(j.Growing), strings.Join(j.Frequencies, ","), j.Restarts, lossesText(j.Losses))
		if err := added.Scan(&j.ID); err != nil {
			return fmt.Errorf("add job %d: %w", j.SlurmID, err)
		}
		if err := addProfile(ctx, tx, j.ID, j.Profile); err != nil {
			return err
		}
		return errors.Join(setMoldable(ctx, tx, j), setMalleable(ctx, tx, j))
	})
}

func addProfile(ctx context.Context, tx *sql.Tx, job int64, p planner.Profile) error {
	for i, step := range p {
		if _, err := tx.ExecContext(ctx, `INSERT INTO profiles (job, step, duration, nodes) VALUES (?, ?, ?, ?)`,
			job, i+1, step.Duration, step.Nodes); err != nil {
			return fmt.Errorf("add profile of row %d: %w", job, err)
		}
	}
	return nil
}

// SetProfile replaces a job's requested profile.
func (s *Store) SetProfile(ctx context.Context, job int64, p planner.Profile) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM profiles WHERE job = ?`, job); err != nil {
			return fmt.Errorf("change profile of row %d: %w", job, err)
		}
		return addProfile(ctx, tx, job, p)
	})
}

// changesText returns the changes of a request as a row has them.
func changesText(changes []row.Change) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.ID + ":" + strconv.Itoa(c.Step)
	}
	return strings.Join(words, " ")
}

func parseChanges(text string) (changes []row.Change, err error) {
	for _, word := range strings.Fields(text) {
		id, step, _ := strings.Cut(word, ":")
		n, err := strconv.Atoi(step)
		if err != nil {
			return nil, fmt.Errorf("changes %q: %w", text, err)
		}
		changes = append(changes, row.Change{ID: id, Step: n})
	}
	return changes, nil
}

// isOpen reports whether it is not known yet if Slurm has the last change of a job.
func isOpen(j *Job) bool {
	_, open := j.OpenChange()
	return open
}

// UpdateJob writes what changes in a job's life: its state, step, times, drive
// mode and batch host, and which of its alternatives it has.
func (s *Store) UpdateJob(ctx context.Context, j *Job) error {
	_, err := s.on().ExecContext(ctx, `UPDATE jobs SET drive = ?, state = ?, step = ?, started = ?, step_started = ?,
		step_ended = ?, ended = ?, end_state = ?, batch_host = ?, suspended = ?, changes = ?, behind = ?, offers = ?, progress = ?, held_idle = ?, begun = ?, change_open = ?, components = ?, aim_since = ?, aim_start = ?, guess = ?, reservation = ?, growing = ?, restarts = ?, losses = ? WHERE id = ?`,
		j.Drive, j.State, j.Step, unix(j.Started), unix(j.StepStarted), unix(j.StepEnded), unix(j.Ended),
		j.EndState, j.BatchHost, int64(j.Suspended/time.Second), changesText(j.Changes), unix(j.Behind), offersText(j.Offers), progressText(j.Progress), j.HeldIdle, j.Begun, isOpen(j), componentsText(j.Components), j.AimSince, j.AimStart, j.Guess, j.Reservation, growingText(j.Growing), j.Restarts, lossesText(j.Losses), j.ID)
	if err != nil {
		return fmt.Errorf("update job %d: %w", j.SlurmID, err)
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		return errors.Join(setMoldable(ctx, tx, j), setMalleable(ctx, tx, j))
	})
}

// ActiveJobs lists the jobs that have not ended, oldest first.
func (s *Store) ActiveJobs(ctx context.Context) ([]*Job, error) {
	return s.jobs(ctx, `WHERE state <> 'ended' ORDER BY id`)
}

// EndedJobs lists the last limit jobs that have ended, in the order of their ends.
func (s *Store) EndedJobs(ctx context.Context, limit int) ([]*Job, error) {
	return s.jobs(ctx, `WHERE id IN (SELECT id FROM jobs WHERE state = 'ended' ORDER BY ended DESC, id DESC LIMIT ?) ORDER BY ended, id`, limit)
}

// Known lists all jobs (of those with the same base job, the one submitted last), and the highest
// ID.
func (s *Store) Known(ctx context.Context) (all []row.Known, last int64, err error) {
	rows, err := s.on().QueryContext(ctx, `SELECT id, slurm_id, uid, max(submitted), (SELECT count(*) FROM profiles WHERE job = jobs.id) FROM jobs GROUP BY slurm_id ORDER BY id`)
	if err != nil {
		return nil, 0, fmt.Errorf("read jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k row.Known
		var submitted int64
		if err := rows.Scan(&k.ID, &k.SlurmID, &k.UID, &submitted, &k.Steps); err != nil {
			return nil, 0, fmt.Errorf("read jobs: %w", err)
		}
		k.Submitted = fromUnix(submitted)
		all = append(all, k)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	err = s.on().QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM jobs`).Scan(&last)
	return all, last, err
}

func (s *Store) jobs(ctx context.Context, where string, args ...any) ([]*Job, error) {
	rows, err := s.on().QueryContext(ctx, `SELECT `+jobColumns+` FROM jobs `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	defer rows.Close()
	var all []*Job
	for rows.Next() {
		var j Job
		var limit float64
		var submitted, begin, started, stepStarted, stepEnded, ended, suspended, behind int64
		var changes, offers, progress, components, aim, growing, frequencies, losses string
		var open bool
		if err := rows.Scan(&j.ID, &j.SlurmID, &submitted, &j.Name, &j.User, &j.UID, &j.GID, &j.Account, &j.QOS,
			&j.Partition, &limit, &j.Drive, &begin, &j.State, &j.Step, &started, &stepStarted, &stepEnded, &ended,
			&j.EndState, &j.BatchHost, &suspended, &changes, &behind, &j.Claim, &offers, &progress, &j.HeldIdle, &j.Begun, &open, &j.Prefer, &components, &aim, &j.AimSince, &j.AimStart, &j.Guess, &j.Array, &j.Task, &j.Reservation, &growing, &frequencies, &j.Restarts, &losses); err != nil {
			return nil, fmt.Errorf("read jobs: %w", err)
		}
		if j.Changes, err = parseChanges(changes); err != nil {
			return nil, fmt.Errorf("read jobs: job %d: %w", j.SlurmID, err)
		}
		if n := len(j.Changes); open && n > 0 {
			j.Changes[n-1].Open = true
		}
		var err1, err2, err3, err4, err5 error
		j.Offers, err1 = parseOffers(offers)
		j.Components, err2 = parseComponents(components)
		j.Progress, err3 = parseProgress(progress)
		j.Growing, err4 = parseGrowing(growing)
		j.Losses, err5 = parseLosses(losses)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			return nil, fmt.Errorf("read jobs: job %d: %w", j.SlurmID, err)
		}
		if frequencies != "" {
			j.Frequencies = strings.Split(frequencies, ",")
		}
		if aim != "" {
			if j.Aim, err = planner.ParseAim(aim); err != nil {
				return nil, fmt.Errorf("read jobs: job %d: %w", j.SlurmID, err)
			}
		}
		j.ExpandLimit, j.Suspended = planner.ExpandLimit(limit), time.Duration(suspended)*time.Second
		j.Submitted, j.Begin, j.Started = fromUnix(submitted), fromUnix(begin), fromUnix(started)
		j.StepStarted, j.StepEnded, j.Ended = fromUnix(stepStarted), fromUnix(stepEnded), fromUnix(ended)
		j.Behind = fromUnix(behind)
		all = append(all, &j)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	for _, j := range all {
		if err := errors.Join(s.readProfile(ctx, j), s.readMoldable(ctx, j), s.readMalleable(ctx, j), checkComponents(j)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) readProfile(ctx context.Context, j *Job) error {
	rows, err := s.on().QueryContext(ctx, `SELECT duration, nodes FROM profiles WHERE job = ? ORDER BY step`, j.ID)
	if err != nil {
		return fmt.Errorf("read profile of job %d: %w", j.SlurmID, err)
	}
	defer rows.Close()
	for rows.Next() {
		var step planner.Step
		if err := rows.Scan(&step.Duration, &step.Nodes); err != nil {
			return fmt.Errorf("read profile of job %d: %w", j.SlurmID, err)
		}
		j.Profile = append(j.Profile, step)
	}
	return rows.Err()
}
