package policy

import (
	"cmp"
	"time"
)

// Retention bounds the retention of ended jobs. The oldest are dropped first, with their events; records stay. Zero
// fields have the defaults given in their comments; negative ones mean no bound. The owner's quota on stored bytes
// applies as well (see Share).
type Retention struct {
	// Jobs bounds the jobs of each owner; 1000 by default.
	Jobs int
	// Age is the time since a job ended; 90 days by default.
	Age time.Duration
}

// WithDefaults returns k with defaults in place of zero fields.
func (k Retention) WithDefaults() Retention {
	return Retention{Jobs: cmp.Or(k.Jobs, 1000), Age: cmp.Or(k.Age, 90*24*time.Hour)}
}

// Reasons for dropping a job.
const (
	Deleted = "deleted" // by a user
	Count   = "count"   // too many, of its owner or in all
	Bytes   = "bytes"   // too large, of its owner or in all
	Age     = "age"
)

// RetentionRules bound the retained jobs.
type RetentionRules struct {
	Retention
	// Ended and EndedBytes bound the number and stored size of all owners' jobs.
	Ended      int
	EndedBytes int64
}

// Superfluous returns a job to drop and the reason, or nil. It considers the owner's jobs and all jobs together. room
// is the number of bytes that the owner's ended jobs may take; negative means no bound.
func (r RetentionRules) Superfluous(a *Archive, owner string, room int64, now time.Time) (j *RetainedJob, why string) {
	if own := a.byOwner[owner]; own != nil {
		oldest := own.Front().Value.(*RetainedJob)
		if r.Jobs >= 0 && own.Len() > r.Jobs {
			return oldest, Count
		}
		if room >= 0 && own.bytes > room {
			return oldest, Bytes
		}
	}
	front := a.all.Front()
	switch {
	case front == nil:
		return nil, ""
	case a.all.Len() > r.Ended:
		return front.Value.(*RetainedJob), Count
	case a.bytes > r.EndedBytes:
		return front.Value.(*RetainedJob), Bytes
	case r.Age >= 0 && now.Sub(front.Value.(*RetainedJob).Ended) > r.Age:
		return front.Value.(*RetainedJob), Age
	}
	return nil, ""
}
