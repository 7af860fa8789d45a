package api

import "context"

// Reading says who may read status, jobs, and the event log.
type Reading int

// Operators read everything; users read what concerns their own jobs.
const (
	OwnJobs Reading = iota // others read nothing more: other jobs look like unknown ones
	AllJobs                // authenticated users read all jobs
	Anybody                // everyone, even on TCP without a credential
)

func (s *Server) reading() Reading {
	if s.Reading == nil {
		return OwnJobs
	}
	return s.Reading()
}

// mayAsk reports whether the caller may read at all.
func (s *Server) mayAsk(c caller) error {
	if c.known || s.reading() == Anybody {
		return nil
	}
	return Errorf(ErrDenied, "this needs a MUNGE credential")
}

// seesAll reports whether the caller reads all users' jobs.
func (s *Server) seesAll(ctx context.Context, c caller) bool {
	switch s.reading() {
	case Anybody:
		return true
	case AllJobs:
		return c.known
	}
	return s.trusted(c) || s.seer(ctx, c)("")
}

// seer returns whether the caller reads the jobs of an account as its coordinator, or all jobs ("")
// because of a role in Slurm.
func (s *Server) seer(ctx context.Context, c caller) func(account string) bool {
	if s.Sees == nil || !c.known {
		return func(string) bool { return false }
	}
	return s.Sees(ctx, c.uid)
}

// mayRead reports whether the caller may read of the job.
func (s *Server) mayRead(ctx context.Context, c caller, id uint32) error {
	if err := s.mayAsk(c); err != nil || s.seesAll(ctx, c) {
		return err
	}
	if j, err := s.Backend.Job(ctx, id); err == nil && j.Account != "" && s.seer(ctx, c)(j.Account) {
		return nil
	}
	return s.mayAct(ctx, c, id)
}
