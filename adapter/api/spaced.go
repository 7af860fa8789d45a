package api

import "fmt"

// noticed is the time between two polls, in seconds, from which on users notice it.
const noticed = 20

// Spaced says what it means that polls come far apart, or "" if they do not.
func (s Status) Spaced() string {
	if s.PollsApart <= noticed {
		return ""
	}
	return fmt.Sprintf("polls come %.0f to %.0f s apart, to take at most %.2g %% of slurmctld's time (slurm.share) or keep to its rate limit: a new job may wait %.0f s until it is seen, a hold gives way as late",
		s.PollPause, max(s.PollsApart, s.PollPause), 100*s.MostShare, s.PollsApart)
}
