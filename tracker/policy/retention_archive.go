// This file decides which ended jobs to keep. An Archive indexes them by age and size, and Rules name the next one to
// drop. It stores nothing.

package policy

import (
	"container/list"
	"time"
)

// RetainedJob is a retained ended job.
type RetainedJob struct {
	ID, Owner string
	Ended     time.Time
	// Bytes is its stored size without records.
	Bytes int64
	// Its elements in the lists of all jobs and of the owner's.
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
	owners := make([]string, 0, len(a.byOwner))
	for owner := range a.byOwner {
		owners = append(owners, owner)
	}
	return owners
}
