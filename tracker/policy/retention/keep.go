package retention

import (
	"cmp"
	"time"
)

// Keep says how long jobs are kept that have ended. The oldest go first, with their events; records stay. Zero fields
// have the defaults of their comments, negative ones are no bound. What an owner may have stored bounds them too; see
// quota.Share.
type Keep struct {
	// Jobs of each owner; 1000.
	Jobs int
	// Age since a job ended; 90 days.
	Age time.Duration
}

// WithDefaults has the defaults for what is zero.
func (k Keep) WithDefaults() Keep {
	return Keep{Jobs: cmp.Or(k.Jobs, 1000), Age: cmp.Or(k.Age, 90*24*time.Hour)}
}

// Why a job is no longer there.
const (
	Deleted = "deleted" // by who may
	Count   = "count"   // its owner has newer ones, as many as are kept, or all owners have
	Bytes   = "bytes"   // the same of what is stored
	Age     = "age"
)

// Rules are the bounds on what is kept.
type Rules struct {
	Keep
	// Ended bounds the jobs of all owners together, and EndedBytes what is stored of them.
	Ended      int
	EndedBytes int64
}

// Superfluous is a job that is not kept, of an owner or of all, and why; nil when all are. room is how many bytes the
// owner's ended jobs may take; negative = no bound.
func (r Rules) Superfluous(a *Archive, owner string, room int64, now time.Time) (j *Job, why string) {
	if own := a.byOwner[owner]; own != nil {
		oldest := own.Front().Value.(*Job)
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
		return front.Value.(*Job), Count
	case a.bytes > r.EndedBytes:
		return front.Value.(*Job), Bytes
	case r.Age >= 0 && now.Sub(front.Value.(*Job).Ended) > r.Age:
		return front.Value.(*Job), Age
	}
	return nil, ""
}
