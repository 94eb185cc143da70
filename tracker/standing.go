package tracker

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// standing is what an agent's last leases say of it. It outlives the agent's sessions.
type standing struct {
	// Leases that failed since one was completed.
	strikes int
	// The first of them and its job, and whether others failed too.
	struck, struckJob    string
	several, severalJobs bool
	// How often it was given a rest since then.
	restCount int
	// Until when, by the tracker's clock and on the wall, from which job (empty = from all), and why.
	restUntil, restShown time.Time
	restJob, restReason  string
}

// suspectAfter is how many leases in a row must fail, not all of the same work, for the agent to be blamed.
const suspectAfter = 3

// strike notes a failed lease, and says whether the agent rather than the work is to blame. The leases that end with a
// session are one failure: the agent died once.
func (a *agent) strike(w work) (suspect bool) {
	s := &a.standing
	if s.strikes == 0 {
		s.struck, s.struckJob = w.subject(), w.parent().id
	}
	if !a.gone || !a.struckOut {
		s.strikes++
	}
	a.struckOut = a.gone
	s.several = s.several || w.subject() != s.struck
	s.severalJobs = s.severalJobs || w.parent().id != s.struckJob
	return s.strikes >= suspectAfter && s.several
}

// forgive forgets what failed, after a success.
func (s *standing) forgive() { *s = standing{} }

// rests says whether the agent is to be given nothing now.
func (s *standing) rests(now time.Time) bool { return s.restJob == "" && now.Before(s.restUntil) }

// restsFrom says whether it is to be given nothing of a job.
func (s *standing) restsFrom(j *job, now time.Time) bool {
	return now.Before(s.restUntil) && (s.restJob == "" || s.restJob == j.id)
}

// rest has an agent that is to blame wait before it is tried again, longer each time. A single lease then tells
// whether it works again. Where all that failed is of one job it may be the job's fault as well: then the rest is from
// that job, and others tell.
func (c *change) rest(a *agent, message string) {
	now := c.cfg.Clock()
	if now.Before(a.restUntil) && (a.restJob == "" || !a.severalJobs) {
		return
	}
	wait := backOff(c.cfg.FirstRest, c.cfg.MaxRest, a.restCount)
	a.restCount++
	a.restJob = a.struckJob
	if a.severalJobs {
		a.restJob = ""
	}
	a.restUntil, a.restShown = now.Add(wait), c.cfg.Now().Add(wait)
	a.restReason = fmt.Sprintf("%d leases in a row failed, the last: %s", a.strikes, clip(message, maxMessageBytes))
	c.metrics.rests.Inc()
	if a.restJob != "" {
		a.restReason = "from " + a.restJob + ": " + a.restReason
	}
	c.log.Warn("agent is given a rest", "agent", a.name(), "seconds", wait.Seconds(), "reason", a.restReason)
}

func (s *standing) show(a *tilthv1.Agent) {
	if s.restCount > 0 {
		a.RestingUntil, a.RestReason = timestamppb.New(s.restShown), s.restReason
	}
}
