package api

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sirupsen/logrus"
)

// Reading says who may read status, jobs, and the event log.
type Reading int

// Operators read everything; users read what concerns their own jobs.
const (
	OwnJobs Reading = iota // others read nothing more: other jobs look like unknown ones
	AllJobs                // authenticated users read all jobs
	Anybody                // everyone, even on TCP without a credential
)

// rights decides what a caller may read and do. Its functions are those of Server.
type rights struct {
	backend    Backend
	operator   func(uid uint32) bool
	readers    func() Reading
	sees       func(ctx context.Context, uid uint32) func(account string) bool
	shows      func(ctx context.Context, uid uint32) *Sight
	hidesNodes func() bool

	lines *lines // of the log, for refusals that the answer hides
	log   logrus.FieldLogger
}

func (r *rights) reading() Reading {
	if r.readers == nil {
		return OwnJobs
	}
	return r.readers()
}

// mayAsk reports whether the caller may read at all.
func (r *rights) mayAsk(c caller) error {
	if c.known || r.reading() == Anybody {
		return nil
	}
	return Errorf(ErrDenied, "this needs a MUNGE credential")
}

// seesAll reports whether the caller reads all users' jobs.
func (r *rights) seesAll(ctx context.Context, c caller) bool {
	switch r.reading() {
	case Anybody:
		return true
	case AllJobs:
		return c.known
	}
	return r.trusted(c) || r.seer(ctx, c)("")
}

// seer returns whether the caller reads the jobs of an account as its coordinator, or all jobs ("")
// because of a role in Slurm.
func (r *rights) seer(ctx context.Context, c caller) func(account string) bool {
	if r.sees == nil || !c.known {
		return func(string) bool { return false }
	}
	return r.sees(ctx, c.uid)
}

// mayRead reports whether the caller may read of the job.
func (r *rights) mayRead(ctx context.Context, c caller, id uint32) error {
	if err := r.mayAsk(c); err != nil || r.seesAll(ctx, c) {
		return err
	}
	if j, err := r.backend.Job(ctx, id); err == nil && j.Account != "" && r.seer(ctx, c)(j.Account) {
		return nil
	}
	return r.mayAct(ctx, c, id)
}

// trusted reports whether a caller may act on all users' jobs.
func (r *rights) trusted(c caller) bool { return c.known && r.acts(c.uid) }

// acts reports whether a user may act on all users' jobs.
func (r *rights) acts(uid uint32) bool {
	return uid == 0 || int(uid) == os.Geteuid() || r.operator != nil && r.operator(uid)
}

// mayAct reports whether the caller may change the job: ErrDenied if unknown,
// ErrForbidden if another user.
func (r *rights) mayAct(ctx context.Context, c caller, id uint32) error {
	if !c.known {
		return Errorf(ErrDenied, "this needs a MUNGE credential: send the header \"Authorization: MUNGE <credential>\"")
	}
	owner, err := r.backend.Owner(ctx, id)
	if err != nil {
		return err
	}
	if c.uid == owner || r.trusted(c) {
		return nil
	}
	foreign := fmt.Sprintf("job %d belongs to uid %d, and you are uid %d", id, owner, c.uid)
	if r.reading() == OwnJobs { // that there is such a job is not for this caller
		r.lines.write(holder{known: true, uid: c.uid}, time.Now(), r.log.WithField("uid", c.uid), logrus.WarnLevel, "refused: "+foreign)
		return r.notThere(ctx, id)
	}
	return Errorf(ErrForbidden, "%s", foreign)
}

// notThere returns the answer about a job that the caller may not know. It equals the answer for a
// job that does not exist: before the first poll of Slurm, no job is known not to exist.
func (r *rights) notThere(ctx context.Context, id uint32) error {
	if is, err := r.backend.Status(ctx); err == nil && is.LastCycle.IsZero() {
		return NotSeen(id)
	}
	return Unknown(id)
}

// mayView reports whether the caller may read the pages beside the API, which hide nothing.
func (r *rights) mayView(ctx context.Context, c caller) error {
	hidden := r.hidesNodes != nil && r.hidesNodes() && !r.trusted(c) && !r.seer(ctx, c)("")
	if hidden || !r.seesAll(ctx, c) {
		return Errorf(ErrForbidden, "these pages are not for you here")
	}
	return nil
}
