package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// droppedAtOnce bounds the jobs dropped by one change.
const droppedAtOnce = 100

// DropAged drops jobs beyond their maximum age.
func (c *Change) DropAged() { c.Retain("") }

// Retain drops a bounded number of an owner's ended jobs beyond its limits, after the other rows of the change are
// written. An empty owner means all owners together.
func (c *Change) Retain(owner string) { c.retains = append(c.retains, owner) }

// Ended returns the number of retained ended jobs and their owners.
func (m *Machine) Ended() (jobs int, owners []string) { return m.archive.Len(), m.archive.Owners() }

// retain drops a bounded number of jobs beyond the limits of an owner, or of all owners if empty.
func (c *Change) retain(owner string) {
	for range droppedAtOnce {
		if j, why := c.superfluous(owner); j != nil {
			c.dropEnded(j, why)
		} else {
			return
		}
	}
}

// superfluous returns an ended job to drop and the reason, or nil.
func (c *Change) superfluous(owner string) (j *policy.RetainedJob, why string) {
	room := int64(-1)
	if may := c.cfg.Shares.Of(owner).StoredBytes; may > 0 {
		room = max(may-c.usageOf(owner).StoredBytes, 0)
	}
	rules := policy.RetentionRules{Retention: c.cfg.Keep, Ended: c.cfg.Limits.Ended, EndedBytes: c.cfg.Limits.EndedBytes}
	return rules.Excess(c.archive, owner, room, c.cfg.Now())
}

// dropEnded drops a job. Its events are swept later; its records stay.
func (c *Change) dropEnded(j *policy.RetainedJob, why string) {
	c.archive.Remove(j)
	c.write.DropJob(j.ID)
	c.lapsed++
	c.effects.Dropped = true
	c.addFact(Dropped(why))
	c.log.Info("ended job dropped", "job", j.ID, "owner", j.Owner, "why", why, "ended", j.Ended, "bytes", j.Bytes)
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

// everMade reports whether a job may once have had the id, in this generation of the store or an earlier one.
func (m *Machine) everMade(id string) bool {
	var n uint64
	_, err := fmt.Sscanf(id, "job-%d", &n)
	return err == nil && IsJobID(id) && n > 0 && n <= m.nextJob
}

// Missing returns the number of jobs that were created and have since been dropped or deleted.
func (m *Machine) Missing() uint64 {
	there := uint64(len(m.jobs) + m.archive.Len())
	return m.nextJob - min(there, m.nextJob)
}

// Delete drops an ended job. Repeating the call changes nothing.
func (c *Change) Delete(id string) error {
	if c.jobs[id] != nil {
		return Refuse(NotNow, "job %s has not ended: cancel it first", id)
	}
	if j := c.archive.Job(id); j != nil {
		c.dropEnded(j, policy.Deleted)
		return nil
	}
	return c.DeleteGone(id)
}

// DeleteGone handles Delete for a job that no longer exists or that the caller may not see.
func (c *Change) DeleteGone(id string) error {
	if !c.everMade(id) {
		return refuseUnknown("job", id)
	}
	c.Repeated("DeleteJob")
	return nil
}

// How long data of temporary use is kept, in memory and in the store.
const (
	// keepGoneDevices is longer, since a board that is missing should be noticed. Builders and tuners come and go
	// under new names.
	keepGoneDevices = 7 * 24 * time.Hour
	keepGoneOthers  = time.Hour
	// keepClosed applies to the closed batches of an ended job. By then agents no longer repeat reports.
	keepClosed = time.Hour
	// closedAtOnce bounds the closed batches removed by one write.
	closedAtOnce = 2000
)

// keptUntil returns when a gone agent is forgotten.
func (m *Machine) keptUntil(a *agent) time.Time {
	keep := keepGoneOthers
	if a.spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
		keep = keepGoneDevices
	}
	return m.cfg.Clock().Add(keep - m.cfg.Now().Sub(a.seen))
}

// forget removes a gone agent, and its device unless that is cordoned or quarantined.
func (c *Change) forget(a *agent) {
	c.forgetName(a.name())
	c.write.DropAgent(a.name())
	if d := a.device; d != nil && d.cordon == nil && d.quarantine == nil {
		delete(c.devices, d.name)
		c.write.DropDevice(d.name)
	}
}

// forgetName removes the agent with that name from memory.
func (m *Machine) forgetName(name string) {
	a := m.agents[name]
	if a == nil {
		return
	}
	delete(m.agents, name)
	m.load.agentBytes -= a.specBytes
	if a.goneAt != nil {
		m.gone.Remove(a.goneAt)
	}
}

// closedRange is the half-open range of closed batch ids from first to beyond.
type closedRange struct{ first, beyond string }

// keepClosed schedules the removal of the closed batches of an ended job.
func (m *Machine) keepClosed(jobID string, proposals uint64) {
	at := m.cfg.Clock().Add(keepClosed)
	for n := uint64(0); n < proposals; n += closedAtOnce {
		m.deadlines.closed(closedRange{batchID(jobID, n), batchID(jobID, n+closedAtOnce)}, at)
	}
}

// recoverClosed does the same for jobs that ended before the tracker started.
func (m *Machine) recoverClosed(rows Rows) error {
	ids, proposals, err := rows.ClosedJobs()
	for i, id := range ids {
		if m.jobs[id] == nil {
			m.keepClosed(id, proposals[i])
		}
	}
	return err
}
