package tracker

import (
	"cmp"
	"container/list"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// archive tells which jobs have ended and are kept, and how much they take of the records file.
type archive struct {
	byID    map[string]*endedJob
	all     list.List // of *endedJob, those that ended first in front
	byOwner map[string]*endedJobs
	bytes   int64
}

// endedJobs are those of an owner.
type endedJobs struct {
	list.List // of *endedJob, those that ended first in front
	bytes     int64
}

// endedJob is a job that has ended and is kept.
type endedJob struct {
	id, owner string
	at        time.Time
	bytes     int64
	// Its places among all and among its owner's.
	all, own *list.Element
}

func newArchive() archive {
	return archive{byID: map[string]*endedJob{}, byOwner: map[string]*endedJobs{}}
}

func (a *archive) add(j *endedJob) {
	own := a.byOwner[j.owner]
	if own == nil {
		own = &endedJobs{}
		a.byOwner[j.owner] = own
	}
	a.byID[j.id] = j
	j.all, j.own = a.all.PushBack(j), own.PushBack(j)
	a.bytes += j.bytes
	own.bytes += j.bytes
}

func (a *archive) remove(j *endedJob) {
	own := a.byOwner[j.owner]
	delete(a.byID, j.id)
	a.all.Remove(j.all)
	own.Remove(j.own)
	a.bytes -= j.bytes
	if own.bytes -= j.bytes; own.Len() == 0 {
		delete(a.byOwner, j.owner)
	}
}

// of is what an owner's ended jobs are and take; nothing when it has none.
func (a *archive) of(owner string) (jobs int, bytes int64) {
	if own := a.byOwner[owner]; own != nil {
		return own.Len(), own.bytes
	}
	return 0, 0
}

// archived notes that a job has ended; what its owner has too much of then is dropped.
func (c *change) archived(j *job) {
	e := &endedJob{id: j.id, owner: j.spec.GetOwner(), at: j.meta.GetEndedAt().AsTime(), bytes: j.storedBytes}
	c.archive.put(c.write, e)
	c.retainOf(e.owner)
}

// put adds a job, also to the store.
func (a *archive) put(w *records.Write, j *endedJob) {
	w.EndJob(j.id, &storev1.EndedRow{Owner: j.owner, EndedAt: timestamppb.New(j.at), StoredBytes: uint64(j.bytes)})
	a.add(j)
}

// recoverArchive reads which jobs have ended.
func (t *Tracker) recoverArchive() error {
	var all []*endedJob
	err := t.db.EndedJobs(func(id string, row *storev1.EndedRow) {
		all = append(all, &endedJob{id: id, owner: row.GetOwner(), at: row.GetEndedAt().AsTime(), bytes: int64(row.GetStoredBytes())})
	})
	slices.SortFunc(all, func(a, b *endedJob) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	for _, j := range all {
		t.archive.add(j)
	}
	return err
}
