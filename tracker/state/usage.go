package state

import (
	"cmp"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// usage is what an owner currently uses.
type usage struct {
	policy.Usage
	// artifacts holds those of batches that wait for a runner or are with one, by digest.
	artifacts map[string]*needed
}

// needed is an artifact and the number of batches that need it.
type needed struct {
	bytes   int64
	batches int
}

// load is the memory used by all owners together.
type load struct {
	// specBytes and candidateBytes are the sizes of open jobs' specifications and candidates.
	specBytes, candidateBytes int64
	// agentBytes is the size of agents' specs, including gone agents.
	agentBytes int64
}

// usageOf returns the current usage of an owner; zero without jobs.
func (m *Machine) usageOf(owner string) policy.Usage {
	if u := m.owners[owner]; u != nil {
		return u.Usage
	}
	return policy.Usage{}
}

// addJob registers a new or recovered job.
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

// dropJob removes an ended job.
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

// store makes e the job's next event, writes it and charges its size to the job's owner.
func (c *Change) store(j *job, e *tilthv1.JobEvent) {
	c.grow(j, c.write.AppendEvent(j.id, c.event(j, e)))
}

// grow charges more stored bytes to a job and its owner.
func (m *Machine) grow(j *job, bytes int64) {
	j.storedBytes += bytes
	m.owners[j.spec.GetOwner()].StoredBytes += bytes
}

// claim returns how many trials the job may reach.
func (j *job) claim() int { return max(j.proposed, int(j.spec.GetBudget().GetTrials())) }

// claimMore returns by how much more candidates raise the claim.
func (j *job) claimMore(candidates int) int { return max(j.proposed+candidates-j.claim(), 0) }

// addBatch registers a new, recovered or retried batch.
func (m *Machine) addBatch(b *batch) {
	b.job.batches[b.id] = b
	m.batches[b.id] = b
	b.job.candidateBytes += b.sizeBytes
	m.load.candidateBytes += b.sizeBytes
	m.pin(b)
}

// dropBatch removes a batch and unpins its artifacts.
func (m *Machine) dropBatch(b *batch) {
	m.unpin(b)
	delete(b.job.batches, b.id)
	delete(m.batches, b.id)
	b.job.candidateBytes -= b.sizeBytes
	m.load.candidateBytes -= b.sizeBytes
}

// pin protects a batch's artifacts from eviction and charges them to its owner.
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

// unpin reverses pin.
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

// candidateBytes approximates the memory that candidates use.
func candidateBytes(candidates []*tilthv1.Candidate) (n int64) {
	for _, c := range candidates {
		n += int64(len(c.GetTrace()) + len(c.GetOrigin()) + len(c.GetDigest()))
	}
	return n
}

// checkQuota returns an error if a job of that many stored bytes exceeds its owner's quota.
func (m *Machine) checkQuota(spec *tilthv1.JobSpec, bytes int64) error {
	owner := spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	return overQuota(cmp.Or(share.Job(owner, has, int(spec.GetBudget().GetTrials())), share.MoreStored(owner, has, bytes)))
}

// checkCandidatesQuota returns an error if the candidates exceed the owner's quota.
func (m *Machine) checkCandidatesQuota(j *job, candidates []*tilthv1.Candidate) error {
	owner := j.spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	return overQuota(cmp.Or(share.MoreTrials(owner, has, j.claimMore(len(candidates))), share.MoreStored(owner, has, candidateBytes(candidates))))
}

// mayBuild reports whether batches of an owner may be built now.
func (m *Machine) mayBuild(owner string) bool {
	return m.cfg.Shares.Of(owner).MayBuild(m.usageOf(owner))
}

func overQuota(x *policy.QuotaExceeded) error {
	if x == nil {
		return nil
	}
	return RefuseOf(OverQuota, x.Of, "%s", x.Text)
}

// cost is what a lease costs its owner: the seconds that its trials occupied the device or compiler or, if the reports
// have none, the time that the agent held the lease.
type cost struct {
	charge  *policy.Charge
	queue   *queue
	size    int
	granted time.Time
	// seconds is the time reported so far.
	seconds float64
}

// firstCost is the assumed cost of a candidate, in seconds, before the class has any history.
const firstCost = 1

// begin charges the estimated cost of size candidates.
func (q *queue) begin(now time.Time, charge *policy.Charge, size int) cost {
	each := cmp.Or(q.cost, firstCost)
	charge.Set(each * float64(size))
	return cost{charge: charge, queue: q, size: size, granted: now}
}

// spend adds reported seconds, bounded by the time since the grant. Anything above the estimate is charged at once.
func (c *cost) spend(now time.Time, seconds float64) {
	if seconds > 0 {
		c.seconds = min(c.seconds+seconds, now.Sub(c.granted).Seconds())
		c.atLeast(c.seconds)
	}
}

// atLeast raises the charge to seconds.
func (c *cost) atLeast(seconds float64) {
	if seconds > c.charge.Paid() {
		c.charge.Set(seconds)
	}
}

// learningRate is the weight of the latest lease in the moving average of costs.
const learningRate = 0.2

// settle replaces the estimate with the actual cost.
func (c *cost) settle(now time.Time) {
	spent := c.seconds
	if spent <= 0 {
		spent = max(now.Sub(c.granted).Seconds(), 0)
	}
	c.charge.Set(spent)
	c.charge.End()
	each := spent / float64(max(c.size, 1))
	c.queue.cost = cmp.Or(c.queue.cost, each)
	c.queue.cost += learningRate * (each - c.queue.cost)
}
