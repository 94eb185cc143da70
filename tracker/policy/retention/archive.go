package retention

import (
	"container/list"
	"time"
)

// Job is a job that has ended and is kept.
type Job struct {
	ID, Owner string
	Ended     time.Time
	// Bytes are what is stored of it, without records.
	Bytes int64
	// Its places among all and among its owner's.
	all, own *list.Element
}

// Archive tells which jobs have ended and are kept, and how much they take of the store.
type Archive struct {
	byID    map[string]*Job
	all     list.List // of *Job, those that ended first in front
	byOwner map[string]*jobs
	bytes   int64
}

// jobs are those of an owner.
type jobs struct {
	list.List // of *Job, those that ended first in front
	bytes     int64
}

// NewArchive returns an archive without jobs.
func NewArchive() *Archive {
	return &Archive{byID: map[string]*Job{}, byOwner: map[string]*jobs{}}
}

// Add keeps a job, which ended last of all.
func (a *Archive) Add(j *Job) {
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

// Remove keeps a job no longer.
func (a *Archive) Remove(j *Job) {
	own := a.byOwner[j.Owner]
	delete(a.byID, j.ID)
	a.all.Remove(j.all)
	own.Remove(j.own)
	a.bytes -= j.Bytes
	if own.bytes -= j.Bytes; own.Len() == 0 {
		delete(a.byOwner, j.Owner)
	}
}

// Job is the job of an id; nil when none is kept.
func (a *Archive) Job(id string) *Job { return a.byID[id] }

// Len is how many jobs are kept.
func (a *Archive) Len() int { return len(a.byID) }

// Bytes are what they take.
func (a *Archive) Bytes() int64 { return a.bytes }

// Of is what an owner's jobs are and take; nothing when it has none.
func (a *Archive) Of(owner string) (jobs int, bytes int64) {
	if own := a.byOwner[owner]; own != nil {
		return own.Len(), own.bytes
	}
	return 0, 0
}

// Owners are those of whom jobs are kept, in any order.
func (a *Archive) Owners() []string {
	owners := make([]string, 0, len(a.byOwner))
	for owner := range a.byOwner {
		owners = append(owners, owner)
	}
	return owners
}
