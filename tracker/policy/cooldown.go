// This file implements cooldowns of agents by the outcomes of their recent leases. If everything fails on an agent,
// the agent is to blame and gets no work for a while, longer each time. If all failures come from one job, or from
// the builds of one of several builders, that may be to blame instead: the cooldown then covers only that work, and
// other work decides. Callers pass in the time.

package policy

import (
	"fmt"
	"time"
)

// FailureRecord summarizes an agent's recent leases. The zero value is empty. It outlives the agent's sessions.
type FailureRecord struct {
	// strikes counts the failed leases since the last completed one.
	strikes int
	// struck is the first of them. The flags are set if leases of other work, jobs or builders failed too.
	struck                                Work
	several, severalJobs, severalBuilders bool
	// count is the number of cooldowns since then.
	count int
	// until and shown are the end of the cooldown by Clock and by the wall clock; job and builder limit it to their
	// work (empty means all work).
	until, shown         time.Time
	job, builder, reason string
}

// Work describes the work of a lease.
type Work struct {
	Subject, Job string
	// Private hides the job's name in reasons.
	Private bool
	// Builder built the objects to measure; empty without objects, or if no other builder was available.
	Builder string
}

// suspectAfter is the number of consecutive failures, not all of the same work, after which the agent is blamed.
const suspectAfter = 3

// AddFailure records a failed lease and reports whether the agent, rather than the work, is to blame. counts is false
// for a failure that was already counted: all leases that end with a session count once.
func (r *FailureRecord) AddFailure(w Work, counts bool) (suspect bool) {
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

// Reset clears the failures after a success.
func (r *FailureRecord) Reset() { *r = FailureRecord{} }

// Cooldown bounds cooldowns. The first lasts First, each later one twice as long, up to Max.
type Cooldown struct{ First, Max time.Duration }

// Begin starts a cooldown of a blamed agent, unless one is in force, and returns its length. wall is the wall-clock
// time; message describes the last failure.
func (p Cooldown) Begin(r *FailureRecord, now, wall time.Time, message string) (wait time.Duration, begun bool) {
	if now.Before(r.until) && !r.outgrown() {
		return 0, false
	}
	wait = Backoff(p.First, p.Max, r.count)
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

// outgrown reports whether something outside the cooldown's scope has failed.
func (r *FailureRecord) outgrown() bool {
	return r.job != "" && r.severalJobs || r.builder != "" && r.severalBuilders
}

// scope returns a prefix for the reason that names the cooldown's scope; empty for all work.
func (r *FailureRecord) scope() string {
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

// InCooldown reports whether the agent must get no work at all now.
func (r *FailureRecord) InCooldown(now time.Time) bool {
	return r.job == "" && r.builder == "" && now.Before(r.until)
}

// InCooldownFor reports whether the agent must not get the given work now.
func (r *FailureRecord) InCooldownFor(w Work, now time.Time) bool {
	return now.Before(r.until) && (r.job == "" || r.job == w.Job) && (r.builder == "" || r.builder == w.Builder)
}

// CooldownJob returns the single job to which the cooldown is limited, regardless of builder, or "".
func (r *FailureRecord) CooldownJob(now time.Time) string {
	if r.builder == "" && now.Before(r.until) {
		return r.job
	}
	return ""
}

// Last returns the wall-clock end and the reason of the last cooldown since a lease was completed; ok is false if
// there was none.
func (r *FailureRecord) Last() (until time.Time, reason string, ok bool) {
	return r.shown, r.reason, r.count > 0
}
