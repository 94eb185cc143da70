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
	// The first of them, and whether other work, of other jobs, or built by others, failed too.
	struck                                Work
	several, severalJobs, severalBuilders bool
	// How often it was given a rest since then.
	count int
	// Until when, by the clock of deadlines and on the wall, from which job and which builder's objects (empty = from
	// all), and why.
	until, shown         time.Time
	job, builder, reason string
}

// Work is what a lease is of.
type Work struct {
	Subject, Job string
	// Private jobs are named to nobody who reads of a rest.
	Private bool
	// Builder is whose objects are measured; empty where there are none, or where nobody else could have built them.
	Builder string
}

// suspectAfter is how many leases in a row must fail, not all of the same work, for the agent to be blamed.
const suspectAfter = 3

// Strike notes a failed lease, and says whether the agent rather than the work is to blame. counts is false for a
// failure that was noted already: the leases that end with a session are one.
func (r *Record) Strike(w Work, counts bool) (suspect bool) {
	if r.strikes == 0 {
		r.struck = w
	}
	if counts {
		r.strikes++
	}
	r.several = r.several || w.Subject != r.struck.Subject
	r.severalJobs = r.severalJobs || w.Job != r.struck.Job
	r.severalBuilders = r.severalBuilders || w.Builder == "" || w.Builder != r.struck.Builder
	return r.strikes >= suspectAfter && r.several
}

// Forgive forgets what failed, after a success.
func (r *Record) Forgive() { *r = Record{} }

// Policy bounds how long an agent rests: First the first time, twice as long each time after it, Longest at most.
type Policy struct{ First, Longest time.Duration }

// Begin has an agent that is to blame rest, unless it does already, and says for how long. wall is now on the wall's
// clock; message says what failed last.
func (p Policy) Begin(r *Record, now, wall time.Time, message string) (wait time.Duration, begun bool) {
	if now.Before(r.until) && !r.outgrown() {
		return 0, false
	}
	wait = retry.Backoff(p.First, p.Longest, r.count)
	r.count++
	r.job, r.builder = r.struck.Job, r.struck.Builder
	if r.severalJobs {
		r.job = ""
	}
	if r.severalBuilders {
		r.builder = ""
	}
	r.until, r.shown = now.Add(wait), wall.Add(wait)
	r.reason = r.scope() + fmt.Sprintf("%d leases in a row failed, the last: %s", r.strikes, message)
	return wait, true
}

// outgrown says whether something failed that the rest is not from.
func (r *Record) outgrown() bool {
	return r.job != "" && r.severalJobs || r.builder != "" && r.severalBuilders
}

// scope begins a reason with what the rest is from; empty = from all.
func (r *Record) scope() string {
	job := r.job
	if r.struck.Private {
		job = "a private job"
	}
	switch {
	case r.job != "" && r.builder != "":
		return fmt.Sprintf("from what %s builds of %s: ", r.builder, job)
	case r.builder != "":
		return fmt.Sprintf("from what %s builds: ", r.builder)
	case r.job != "":
		return "from " + job + ": "
	}
	return ""
}

// Rests says whether the agent is to be given nothing now.
func (r *Record) Rests(now time.Time) bool {
	return r.job == "" && r.builder == "" && now.Before(r.until)
}

// RestsFrom says whether it is not to be given some work.
func (r *Record) RestsFrom(w Work, now time.Time) bool {
	return now.Before(r.until) && (r.job == "" || r.job == w.Job) && (r.builder == "" || r.builder == w.Builder)
}

// From is the one job from which it rests now, whoever built what is measured; empty when there is none.
func (r *Record) From(now time.Time) string {
	if r.builder == "" && now.Before(r.until) {
		return r.job
	}
	return ""
}

// Last is its last rest since a lease was completed: until when, on the wall, and why; ok is false when it had none.
func (r *Record) Last() (until time.Time, reason string, ok bool) {
	return r.shown, r.reason, r.count > 0
}
