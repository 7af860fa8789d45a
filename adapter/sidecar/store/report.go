package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// CostQuery selects what is summed up.
type CostQuery struct {
	From, To time.Time
	Now      time.Time // until when what goes on is counted
	By       string    // one of CostBy; "" for one sum
	Owner    *uint32   // only of this user; nil for all
	Limit    int       // groups
}

// CostBy lists what jobs and stock jobs can be grouped by: columns of their tables.
var CostBy = []string{"user", "account", "partition", "qos"}

// Cost holds what one group had, and what its promises cost, within the period. Sums are node-seconds.
type Cost struct {
	Group    string
	Jobs     int     // evolving jobs that had nodes
	Steps    float64 // requested for their steps, in proportion
	Planned  float64
	Had      float64
	Wasted   float64 // had, and neither requested nor lent
	Lent     float64
	Held     float64
	HeldIdle float64

	Kept, Late, Broken, NotReached int     // promises
	LateSeconds, LatestSeconds     float64 // of those kept late: on average, and at most

	Delayed                      int // stock jobs of the group
	DelayedSeconds, DelayedWorst int64
}

// costs sums up a period (?1 to ?2, now ?3) by group. %[1]s is the group of a job and %[2]s that of a stock job,
// %[3]s restricts both to a user.
const costs = `
WITH mine AS MATERIALIZED (
	SELECT id, %[1]s AS grp FROM jobs j WHERE (ended = 0 OR ended > ?1) AND submitted < ?2 %[3]s
), steps AS (
	SELECT m.grp, a.job, a.step, coalesce(p.nodes, 0) AS size, p.duration, b.job IS NOT NULL AS malleable, max(a.ends = 0) AS goes_on,
		sum(max(iif(a.ends = 0, ?3, a.ends) - a.starts, 0)) AS lasted,
		sum(max(iif(a.ends = 0, ?3, a.ends) - a.starts, 0) * a.nodes) AS whole,
		sum(max(iif(a.ends = 0, ?3, a.ends) - a.starts, 0) * max(a.nodes - coalesce(p.nodes, a.nodes), 0)) AS beyond,
		sum(max(min(iif(a.ends = 0, ?3, a.ends), ?2) - max(a.starts, ?1), 0) * a.nodes) AS here
	FROM mine m JOIN allocations a ON a.job = m.id LEFT JOIN profiles p ON p.job = a.job AND p.step = a.step LEFT JOIN malleable b ON b.job = a.job
	GROUP BY a.job, a.step
), used AS (
	SELECT grp, job, here, 1.0 * here / whole AS part, iif(malleable, beyond, 0) AS lent, whole,
		iif(duration IS NULL, whole, size * iif(goes_on, min(duration, lasted), duration)) AS asked
	FROM steps WHERE here > 0
), all_of (grp, jobs, asked, planned, had, wasted, lent, held, idle, kept, late, broken, missed, late_sum, latest, delayed, delay_sum, delay_most) AS (
	SELECT grp, count(DISTINCT job), sum(asked * part), 0, sum(here), sum(max(whole - lent - asked, 0) * part), sum(lent * part), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM used GROUP BY grp
	UNION ALL
	SELECT m.grp, 0, 0, sum(max(min(p.ends, ?2) - max(p.starts, ?1), 0) * p.nodes), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM mine m JOIN plans p ON p.job = m.id GROUP BY m.grp
	UNION ALL
	SELECT %[1]s, 0, 0, 0, 0, 0, 0, sum(held * (min(h.hour + 3600, ?2) - max(h.hour, ?1)) / 3600000.0), sum(idle * (min(h.hour + 3600, ?2) - max(h.hour, ?1)) / 3600000.0), 0, 0, 0, 0, 0, 0, 0, 0, 0
	FROM hold_hours h JOIN jobs j ON j.id = h.job WHERE h.hour > ?1 - 3600 AND h.hour < ?2 %[3]s GROUP BY 1
	UNION ALL
	SELECT %[1]s, 0, 0, 0, 0, 0, 0, 0, 0, sum(outcome = 'kept'), sum(outcome = 'late'), sum(outcome = 'broken'), sum(outcome = 'not reached'),
		sum(iif(outcome = 'late', decided - max(at, asked), 0)) / 1000.0, max(iif(outcome = 'late', decided - max(at, asked), 0)) / 1000.0, 0, 0, 0
	FROM promises p JOIN jobs j ON j.id = p.job WHERE outcome <> '' AND decided >= ?1 * 1000 AND decided < ?2 * 1000 %[3]s GROUP BY 1
	UNION ALL
	SELECT %[2]s, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, count(*), sum(seconds), max(seconds) FROM delays j WHERE since >= ?1 AND since < ?2 AND seconds > 0 %[3]s GROUP BY 1
)
SELECT grp, sum(jobs), sum(asked), sum(planned), sum(had), sum(wasted), sum(lent), sum(held), sum(idle), sum(kept), sum(late), sum(broken), sum(missed),
	coalesce(sum(late_sum) / nullif(sum(late), 0), 0), max(latest), sum(delayed), sum(delay_sum), max(delay_most), count(*) OVER ()
FROM all_of WHERE grp IS NOT NULL GROUP BY grp ORDER BY sum(idle) DESC, sum(had) DESC, grp LIMIT ?4`

// Costs sums up what jobs had, and what promises cost, the dearest groups first, and returns how many groups there are.
func (s *Store) Costs(ctx context.Context, q CostQuery) (all []Cost, groups int, err error) {
	of, from, to := "''", q.From.Unix(), q.To.Unix()
	if q.By != "" {
		if !slices.Contains(CostBy, q.By) {
			return nil, 0, fmt.Errorf("costs by %q", q.By)
		}
		of = "j." + q.By
	}
	whose := ""
	if q.Owner != nil {
		whose = fmt.Sprintf("AND j.uid = %d", *q.Owner)
	}
	rows, err := s.on().QueryContext(ctx, fmt.Sprintf(costs, of, of, whose), from, to, min(q.Now.Unix(), to), q.Limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read costs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Cost
		if err := rows.Scan(&c.Group, &c.Jobs, &c.Steps, &c.Planned, &c.Had, &c.Wasted, &c.Lent, &c.Held, &c.HeldIdle, &c.Kept, &c.Late, &c.Broken, &c.NotReached,
			&c.LateSeconds, &c.LatestSeconds, &c.Delayed, &c.DelayedSeconds, &c.DelayedWorst, &groups); err != nil {
			return nil, 0, fmt.Errorf("read costs: %w", err)
		}
		all = append(all, c)
	}
	return all, groups, rows.Err()
}

// Cause counts promises that were not kept for the same reason.
type Cause struct {
	Outcome, Cause string
	Promises       int
}

// mostCauses bounds the answer of Causes. There are some twenty.
const mostCauses = 50

// Causes counts why promises of a period were late or broken, the most frequent first.
func (s *Store) Causes(ctx context.Context, q CostQuery) (all []Cause, err error) {
	where, args := []string{`outcome IN ('late', 'broken')`, `decided >= ?`, `decided < ?`}, []any{q.From.UnixMilli(), q.To.UnixMilli()}
	if q.Owner != nil {
		where, args = append(where, `job IN (SELECT id FROM jobs WHERE uid = ?)`), append(args, *q.Owner)
	}
	rows, err := s.on().QueryContext(ctx, `SELECT outcome, cause, count(*) FROM promises WHERE `+strings.Join(where, " AND ")+` GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ?`, append(args, mostCauses)...)
	if err != nil {
		return nil, fmt.Errorf("read causes: %w", err)
	}
	return scanCauses(rows)
}

func scanCauses(rows *sql.Rows) (all []Cause, err error) {
	defer rows.Close()
	for rows.Next() {
		var c Cause
		if err := rows.Scan(&c.Outcome, &c.Cause, &c.Promises); err != nil {
			return nil, fmt.Errorf("read causes: %w", err)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}
