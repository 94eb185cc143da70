package state

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// whyDamaged is the failure reason of jobs with damaged rows.
const whyDamaged = "rows of it in the records file are damaged: submit it again; measurements are kept"

// endLost ends the jobs whose rows, or whose batches' rows, are damaged. Other jobs continue.
func (c *Change) endLost(jobs []*records.OpenJob, batches []*records.OpenBatch) {
	lost := map[string]*job{}
	for _, b := range batches {
		c.log.Error("batch is damaged and dropped", "batch", b.ID, "error", b.Damage)
		c.write.DropBatch(b.ID)
		id, _, _ := strings.Cut(b.ID, ".")
		if j := c.jobs[id]; j != nil {
			lost[id] = j
		}
	}
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		c.end(lost[id], tilthv1.JobState_JOB_STATE_FAILED, whyDamaged)
	}
	for _, j := range jobs {
		c.log.Error("job cannot go on", "job", j.ID, "error", j.Damage)
		row := c.endedRow(j)
		c.write.PutJob(row)
		c.keepEnded(&policy.RetainedJob{ID: j.ID, Owner: j.Spec.GetOwner(), Ended: row.GetJob().GetEndedAt().AsTime(), Bytes: int64(row.GetStoredBytes())})
	}
}

// endedRow returns the final row of a damaged job. It keeps whatever was readable.
func (c *Change) endedRow(stored *records.OpenJob) *storev1.JobRow {
	row := stored.Row
	if row.GetJob() == nil || row.GetJob().GetId() != stored.ID {
		row = &storev1.JobRow{Job: &tilthv1.Job{Id: stored.ID, CreatedAt: c.now()}}
	}
	row.Lease = nil
	row.Job.State, row.Job.Reason, row.Job.EndedAt = tilthv1.JobState_JOB_STATE_FAILED, whyDamaged, c.now()
	return row
}

// recoverBatches loads the open batches and returns those that are damaged.
func (m *Machine) recoverBatches(stored []*records.OpenBatch) (damaged []*records.OpenBatch, err error) {
	for _, b := range stored {
		if b.Damage == nil {
			b.Damage = m.recoverBatch(b)
		}
		switch {
		case errors.Is(b.Damage, records.ErrDamaged):
			damaged = append(damaged, b)
		case b.Damage != nil:
			return nil, b.Damage
		}
	}
	return damaged, nil
}

const (
	// MaxAgentBytes bounds the stored spec of an agent, so that several fit one message.
	MaxAgentBytes = 1 << 20
	// maxHostBytes bounds the host and version strings of a shortened spec.
	maxHostBytes = 256
)

// shorten cuts the spec of an agent that joined before bounds existed, and reports whether it was too large. It keeps
// the first items that fit, and drops labels, which only inform people.
func shorten(spec *tilthv1.AgentSpec) bool {
	if proto.Size(spec) <= MaxAgentBytes && offered(spec) <= wire.MaxOffers {
		return false
	}
	left := MaxAgentBytes / 2
	fits := func(size int) bool {
		if size > left {
			return false
		}
		left -= size
		return true
	}
	short := func(name string) bool { return len(name) <= records.MaxNameBytes && fits(len(name)) }
	spec.Host, spec.Version = clip(spec.GetHost(), maxHostBytes), clip(spec.GetVersion(), maxHostBytes)
	spec.Labels, spec.Sandbox = nil, nil
	spec.Tuners = few(spec.GetTuners(), short)
	spec.Toolchains = few(spec.GetToolchains(), short)
	spec.Capabilities = few(spec.GetCapabilities(), short)
	spec.DeviceClasses = few(spec.GetDeviceClasses(), func(d *tilthv1.DeviceClass) bool {
		return len(d.GetName()) <= records.MaxNameBytes && fits(proto.Size(d))
	})
	return true
}

// few returns the first items that fit.
func few[T any](items []T, fits func(T) bool) (out []T) {
	for _, item := range items {
		if len(out) == wire.MaxOffers {
			break
		}
		if fits(item) {
			out = append(out, item)
		}
	}
	return out
}
