package store

import (
	"context"
	"strings"
	"time"
)

// Place is the place of an ended job in the history: its end in Unix seconds, and its row. Rows are unique, IDs of
// Slurm are not.
type Place struct{ Ended, Row int64 }

// Task is a task of an array, or all of them.
type Task struct {
	Array, Number uint32
	One           bool
}

// HistoryFilter picks ended jobs. An empty list picks all.
type HistoryFilter struct {
	From, To time.Time // ended at From or later, and submitted before To; zero for any time
	Jobs     []uint32  // Slurm IDs
	Tasks    []Task    // tasks of arrays, besides Jobs
	Users    []string  // names or UIDs
	Names    []string
	Before   Place // of the last job that was read; zero for the beginning
	Limit    int

	Owner    *uint32  // only this user's jobs, and those of the accounts; nil for all
	Accounts []string // that Owner coordinates
}

// History lists ended jobs, the latest end first.
func (s *Store) History(ctx context.Context, f HistoryFilter) ([]*Job, error) {
	statement, args := f.statement()
	return s.jobs(ctx, statement, args...)
}

// statement returns the end of the statement that reads the jobs.
func (f HistoryFilter) statement() (string, []any) {
	where, args := []string{`state = 'ended'`}, []any{}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if !f.From.IsZero() {
		add(`ended >= ?`, f.From.Unix())
	}
	if !f.To.IsZero() {
		add(`submitted < ?`, f.To.Unix())
	}
	if f.Before != (Place{}) {
		add(`(ended, id) < (?, ?)`, f.Before.Ended, f.Before.Row)
	}
	if len(f.Jobs)+len(f.Tasks) > 0 {
		named, values := []string{`slurm_id IN (` + marks(len(f.Jobs)) + `)`}, anyOf(f.Jobs)
		for _, t := range f.Tasks {
			if named, values = append(named, `array = ?`), append(values, t.Array); t.One {
				named[len(named)-1] += ` AND task = ?`
				values = append(values, t.Number)
			}
		}
		add(`(`+strings.Join(named, ` OR `)+`)`, values...)
	}
	if n := len(f.Users); n > 0 {
		add(`(user IN (`+marks(n)+`) OR uid IN (`+marks(n)+`))`, append(anyOf(f.Users), anyOf(f.Users)...)...)
	}
	if len(f.Names) > 0 {
		add(`name IN (`+marks(len(f.Names))+`)`, anyOf(f.Names)...)
	}
	switch n := len(f.Accounts); {
	case f.Owner == nil:
	case n == 0:
		add(`uid = ?`, *f.Owner)
	default:
		add(`(uid = ? OR account IN (`+marks(n)+`))`, append([]any{*f.Owner}, anyOf(f.Accounts)...)...)
	}
	return `WHERE ` + strings.Join(where, " AND ") + ` ORDER BY ended DESC, id DESC LIMIT ?`, append(args, f.Limit)
}

// marks returns placeholders of a statement.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

func anyOf[T any](list []T) []any {
	all := make([]any, len(list))
	for i, one := range list {
		all[i] = one
	}
	return all
}
