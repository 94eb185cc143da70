package state

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// archived adds an ended job to the archive and schedules retention for its owner.
func (c *Change) archived(j *job) {
	c.keepEnded(&policy.RetainedJob{ID: j.id, Owner: j.spec.GetOwner(), Ended: j.meta.GetEndedAt().AsTime(), Bytes: j.storedBytes})
	c.retainOf(j.spec.GetOwner())
}

// keepEnded adds an ended job to the archive, in memory and in the store.
func (c *Change) keepEnded(j *policy.RetainedJob) {
	c.write.EndJob(j.ID, &storev1.EndedRow{Owner: j.Owner, EndedAt: timestamppb.New(j.Ended), StoredBytes: uint64(j.Bytes)})
	c.archive.Add(j)
}

// recoverArchive loads the ended jobs from the store.
func (m *Machine) recoverArchive(rows Rows) error {
	var all []*policy.RetainedJob
	err := rows.EndedJobs(func(id string, row *storev1.EndedRow) {
		all = append(all, &policy.RetainedJob{ID: id, Owner: row.GetOwner(), Ended: row.GetEndedAt().AsTime(), Bytes: int64(row.GetStoredBytes())})
	})
	slices.SortFunc(all, func(a, b *policy.RetainedJob) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID)) })
	for _, j := range all {
		m.archive.Add(j)
	}
	return err
}
