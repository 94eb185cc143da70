package state

import (
	"cmp"
	"slices"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// needing returns the jobs with queued work that needs an artifact, sorted by id.
func (m *Machine) needing(digest string) (jobs []*job) {
	for _, j := range m.jobs {
		waits := j.lease == nil && slices.Contains(j.needs(), digest)
		for _, b := range j.batches {
			waits = waits || b.lease == nil && slices.Contains(b.artifactDigests(), digest)
		}
		if waits {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	return jobs
}

// rebuild sends queued measurement batches whose artifacts are missing back to builders. It preserves their order.
func (c *Change) rebuild(j *job) {
	runners := class{kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass()}
	if q := c.queues[runners]; q != nil {
		q.work.Remove(j.spec.GetOwner(), j.id)
	}
	for _, b := range j.inOrder() {
		if b.stage != storev1.Stage_STAGE_MEASURE || b.lease != nil {
			continue
		}
		if !c.artifactsThere(b) {
			c.log.Warn("artifacts of a batch are damaged: building it again", "batch", b.id)
			c.toBuild(b)
			c.move(b)
		}
		if b.retry == nil {
			c.enqueue(b, false)
		}
	}
}

// lackedBy returns the digest of an artifact that the job itself needs and the store lacks, or "".
func (m *Machine) lackedBy(j *job) string {
	for _, digest := range j.needs() {
		if complete, _ := m.artifacts.Stat(digest); !complete {
			return digest
		}
	}
	return ""
}

// endDamaged ends a job whose files only its client can supply again.
func (c *Change) endDamaged(j *job, digest string) {
	remedy := "run it again"
	if j.reads() {
		remedy = "submit it again"
	}
	c.end(j, tilthv1.JobState_JOB_STATE_FAILED, "the tracker's copy of artifact "+digest+" was damaged: "+remedy)
}

// Damaged requeues or ends the work that needs a damaged artifact, which has been set aside. Work under lease
// continues: the agent may have the artifact, and returns the lease if it does not.
func (c *Change) Damaged(digest string) {
	for _, j := range c.needing(digest) {
		if j.runs() || j.reads() {
			c.endDamaged(j, digest)
		} else {
			c.rebuild(j)
		}
	}
}
