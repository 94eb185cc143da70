package policy

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
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

// Excess returns a job to drop and the reason, or nil. It considers the owner's jobs and all jobs together. room
// is the number of bytes that the owner's ended jobs may take; negative means no bound.
func (r RetentionRules) Excess(a *Archive, owner string, room int64, now time.Time) (j *RetainedJob, why string) {
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

// RetainedJob is a retained ended job.
type RetainedJob struct {
	ID, Owner string
	Ended     time.Time
	// Bytes is its stored size without records.
	Bytes int64
	// all and own are its elements in the lists of all jobs and of the owner's jobs.
	all, own *list.Element
}

// Archive indexes the retained ended jobs by age and size.
type Archive struct {
	byID    map[string]*RetainedJob
	all     list.List // of *Job, oldest first
	byOwner map[string]*jobs
	bytes   int64
}

// jobs are the retained jobs of one owner.
type jobs struct {
	list.List // of *Job, oldest first
	bytes     int64
}

// NewArchive returns an empty archive.
func NewArchive() *Archive {
	return &Archive{byID: map[string]*RetainedJob{}, byOwner: map[string]*jobs{}}
}

// Add adds a job, which must be the one that ended last.
func (a *Archive) Add(j *RetainedJob) {
	own := a.byOwner[j.Owner]
	if own == nil {
		own = &jobs{}
		a.byOwner[j.Owner] = own
	}
	a.byID[j.ID] = j
	j.all, j.own = a.all.PushBack(j), own.PushBack(j)
	a.bytes += j.Bytes
	own.bytes += j.Bytes
}

// Remove removes a job.
func (a *Archive) Remove(j *RetainedJob) {
	own := a.byOwner[j.Owner]
	delete(a.byID, j.ID)
	a.all.Remove(j.all)
	own.Remove(j.own)
	a.bytes -= j.Bytes
	if own.bytes -= j.Bytes; own.Len() == 0 {
		delete(a.byOwner, j.Owner)
	}
}

// Job returns the job with an id, or nil.
func (a *Archive) Job(id string) *RetainedJob { return a.byID[id] }

// Len returns the number of jobs.
func (a *Archive) Len() int { return len(a.byID) }

// Bytes returns the stored size of all jobs.
func (a *Archive) Bytes() int64 { return a.bytes }

// Of returns the number and size of an owner's jobs.
func (a *Archive) Of(owner string) (jobs int, bytes int64) {
	if own := a.byOwner[owner]; own != nil {
		return own.Len(), own.bytes
	}
	return 0, 0
}

// Owners returns the owners of jobs, in any order.
func (a *Archive) Owners() []string {
	return slices.Collect(maps.Keys(a.byOwner))
}
