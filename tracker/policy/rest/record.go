package rest

import (
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy/retry"
)

// Record is what an agent's last leases say of it; the zero value says nothing. It outlives the agent's sessions.
type Record struct {
	// Leases that failed since one was completed.
	strikes int
	// The first of them and its job, and whether others failed too.
	struck, struckJob    string
	several, severalJobs bool
	// How often it was given a rest since then.
	count int
	// Until when, by the clock of deadlines and on the wall, from which job (empty = from all), and why.
	until, shown time.Time
	job, reason  string
}

// suspectAfter is how many leases in a row must fail, not all of the same work, for the agent to be blamed.
const suspectAfter = 3

// Strike notes a failed lease, and says whether the agent rather than the work is to blame. counts is false for a
// failure that was noted already: the leases that end with a session are one.
func (r *Record) Strike(subject, job string, counts bool) (suspect bool) {
	if r.strikes == 0 {
		r.struck, r.struckJob = subject, job
	}
	if counts {
		r.strikes++
	}
	r.several = r.several || subject != r.struck
	r.severalJobs = r.severalJobs || job != r.struckJob
	return r.strikes >= suspectAfter && r.several
}

// Forgive forgets what failed, after a success.
func (r *Record) Forgive() { *r = Record{} }

// Policy bounds how long an agent rests: First the first time, twice as long each time after it, Longest at most.
type Policy struct{ First, Longest time.Duration }

// Begin has an agent that is to blame rest, unless it does already, and says for how long. wall is now on the wall's
// clock; message says what failed last.
func (p Policy) Begin(r *Record, now, wall time.Time, message string) (wait time.Duration, begun bool) {
	if now.Before(r.until) && (r.job == "" || !r.severalJobs) {
		return 0, false
	}
	wait = retry.Backoff(p.First, p.Longest, r.count)
	r.count++
	r.job = r.struckJob
	if r.severalJobs {
		r.job = ""
	}
	r.until, r.shown = now.Add(wait), wall.Add(wait)
	r.reason = fmt.Sprintf("%d leases in a row failed, the last: %s", r.strikes, message)
	if r.job != "" {
		r.reason = "from " + r.job + ": " + r.reason
	}
	return wait, true
}

// Rests says whether the agent is to be given nothing now.
func (r *Record) Rests(now time.Time) bool { return r.job == "" && now.Before(r.until) }

// RestsFrom says whether it is to be given nothing of a job.
func (r *Record) RestsFrom(job string, now time.Time) bool {
	return now.Before(r.until) && (r.job == "" || r.job == job)
}

// From is the one job from which it rests now; empty when there is none.
func (r *Record) From(now time.Time) string {
	if now.Before(r.until) {
		return r.job
	}
	return ""
}

// Last is its last rest since a lease was completed: until when, on the wall, and why; ok is false when it had none.
func (r *Record) Last() (until time.Time, reason string, ok bool) {
	return r.shown, r.reason, r.count > 0
}
