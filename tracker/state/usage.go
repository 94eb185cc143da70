package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
)

// usage is what an owner has of the farm now.
type usage struct {
	quota.Usage
	// Sizes of the artifacts of batches that wait for a runner or are with one, and how many batches need each.
	artifacts map[string]*needed
}

// needed is an artifact that batches need.
type needed struct {
	bytes   int64
	batches int
}

// load is what the tracker keeps in memory for all owners together.
type load struct {
	// Specifications of the jobs that have not ended, and candidates of their batches.
	specBytes, candidateBytes int64
	// Specifications of agents, those that are gone included.
	agentBytes int64
}

// usageOf is what an owner has now; nothing when it has no jobs.
func (m *Machine) usageOf(owner string) quota.Usage {
	if u := m.owners[owner]; u != nil {
		return u.Usage
	}
	return quota.Usage{}
}

// addJob counts a job that begins, or is recovered.
func (m *Machine) addJob(j *job) {
	m.jobs[j.id] = j
	m.load.specBytes += j.specBytes
	owner := j.spec.GetOwner()
	u := m.owners[owner]
	if u == nil {
		u = &usage{artifacts: map[string]*needed{}}
		m.owners[owner] = u
	}
	u.Jobs++
	u.Trials += j.claim()
	u.StoredBytes += j.storedBytes
}

// dropJob counts one that ended.
func (m *Machine) dropJob(j *job) {
	delete(m.jobs, j.id)
	m.load.specBytes -= j.specBytes
	owner := j.spec.GetOwner()
	u := m.owners[owner]
	u.Jobs--
	u.Trials -= j.claim()
	u.StoredBytes -= j.storedBytes
	if u.Jobs == 0 {
		delete(m.owners, owner)
	}
}

// store has an event stored, on the account of its job's owner.
func (c *Change) store(j *job, e *tilthv1.JobEvent) { c.grow(j, c.write.AppendEvent(j.id, e)) }

// grow notes that so much more is stored of a job.
func (m *Machine) grow(j *job, bytes int64) {
	j.storedBytes += bytes
	m.owners[j.spec.GetOwner()].StoredBytes += bytes
}

// claim is how many trials the job may come to.
func (j *job) claim() int { return max(j.proposed, int(j.spec.GetBudget().GetTrials())) }

// claimMore is by how much so many candidates bring the claim up.
func (j *job) claimMore(candidates int) int { return max(j.proposed+candidates-j.claim(), 0) }

// addBatch counts a batch that is proposed, or recovered, or tried again.
func (m *Machine) addBatch(b *batch) {
	b.job.batches[b.id] = b
	m.batches[b.id] = b
	b.job.candidateBytes += b.sizeBytes
	m.load.candidateBytes += b.sizeBytes
	m.pin(b)
}

// dropBatch counts one that is no longer under way; its artifacts may go.
func (m *Machine) dropBatch(b *batch) {
	m.unpin(b)
	delete(b.job.batches, b.id)
	delete(m.batches, b.id)
	b.job.candidateBytes -= b.sizeBytes
	m.load.candidateBytes -= b.sizeBytes
}

// pin keeps a batch's artifacts, on its owner's account.
func (m *Machine) pin(b *batch) {
	m.artifacts.Pin(b.artifactDigests()...)
	u := m.owners[b.job.spec.GetOwner()]
	for _, digest := range b.artifactDigests() {
		n := u.artifacts[digest]
		if n == nil {
			_, size := m.artifacts.Stat(digest)
			n = &needed{bytes: size}
			u.artifacts[digest] = n
			u.ArtifactBytes += size
		}
		n.batches++
	}
}

// unpin lets them go.
func (m *Machine) unpin(b *batch) {
	m.artifacts.Unpin(b.artifactDigests()...)
	u := m.owners[b.job.spec.GetOwner()]
	for _, digest := range b.artifactDigests() {
		n := u.artifacts[digest]
		if n.batches--; n.batches == 0 {
			delete(u.artifacts, digest)
			u.ArtifactBytes -= n.bytes
		}
	}
	b.artifacts = nil
}

// candidateBytes is what a batch takes of memory, mostly.
func candidateBytes(candidates []*tilthv1.Candidate) (n int64) {
	for _, c := range candidates {
		n += int64(len(c.GetTrace()) + len(c.GetOrigin()) + len(c.GetDigest()))
	}
	return n
}
