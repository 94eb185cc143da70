package state

import (
	"cmp"
	"slices"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func (c *Change) propose(j *job, req *tilthv1.ProposeBatchRequest) *tilthv1.ProposeBatchResponse {
	p := j.progress[req.GetTaskIndex()]
	b := &batch{
		id: batchIn(j.id, j.proposals, c.generation), job: j, task: req.GetTaskIndex(), proposal: j.proposals, firstTrial: p.GetProposed(),
		mode: req.GetMode(), remeasured: req.GetRemeasured(), stage: storev1.Stage_STAGE_BUILD, recorded: make([]byte, len(req.GetCandidates())), open: len(req.GetCandidates()),
		predicted: req.GetPredictedSeconds(), candidates: req.GetCandidates(), sizeBytes: candidateBytes(req.GetCandidates()), // the tracker's from here on
	}
	for i, candidate := range b.candidates {
		candidate.Trial = b.firstTrial + uint32(i)
	}
	j.proposals++
	j.faults, j.failures, j.failedBy = 0, 0, nil
	c.owners[j.spec.GetOwner()].Trials += j.claimMore(len(b.candidates))
	p.Proposed += uint32(len(b.candidates))
	j.proposed += len(b.candidates)
	e := c.event(j)
	e.Event = &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		BatchId: b.id, Proposal: b.proposal, TaskIndex: b.task, Candidates: b.candidates, Mode: b.mode, SearchSeconds: req.GetSearchSeconds(),
		Remeasured: b.remeasured, PredictedSeconds: b.predicted,
	}}
	b.eventSequence = e.GetSequence()
	c.store(j, e)
	c.write.PutProgress(j.id, b.task, p)
	c.addBatch(b)
	c.move(b)
	c.enqueue(b, false)
	c.useModel(j)
	return &tilthv1.ProposeBatchResponse{BatchId: b.id, FirstTrial: b.firstTrial}
}

// Proposal is the result of Propose.
type Proposal struct {
	*tilthv1.ProposeBatchResponse
	// Closed is set, and nothing else, if the batch was proposed before and is no longer open. It is the prefix of the
	// batch id in the store.
	Closed string
}

// Propose creates a batch from a tuner's candidates, or finds the batch that an earlier call of the same proposal
// created.
func (c *Change) Propose(req *tilthv1.ProposeBatchRequest) (Proposal, error) {
	j, ok := c.lookUp(req.GetLease()).(*job)
	if !ok {
		return Proposal{}, Stale("ProposeBatch", req.GetLease())
	}
	switch n := req.GetProposal(); {
	case n < j.proposals:
		// A batch that is not in memory is closed. Its row is on disk by the time this change is.
		c.Repeated("ProposeBatch")
		if b := j.batchOf(n); b != nil {
			return Proposal{ProposeBatchResponse: &tilthv1.ProposeBatchResponse{BatchId: b.id, FirstTrial: b.firstTrial}}, nil
		}
		return Proposal{Closed: batchID(j.id, n)}, nil
	case n > j.proposals:
		return Proposal{}, Refuse(OtherHistory, "proposal: is %d, the job's next is %d", n, j.proposals)
	case int(req.GetTaskIndex()) >= len(j.spec.GetTasks()):
		return Proposal{}, refuseField("task_index", "is %d, the job has %d tasks", req.GetTaskIndex(), len(j.spec.GetTasks()))
	}
	if err := cmp.Or(c.checkCandidatesQuota(j, req.GetCandidates()), c.roomForBatch(j, req.GetCandidates())); err != nil {
		return Proposal{}, err
	}
	return Proposal{ProposeBatchResponse: c.propose(j, req)}, nil
}

// needing returns the jobs with queued work that needs an artifact, sorted by id.
func (m *Machine) needing(digest string) (jobs []*job) {
	for _, j := range m.jobsByID() {
		waits := j.lease == nil && slices.Contains(j.needs(), digest)
		for _, b := range j.batches {
			waits = waits || b.lease == nil && slices.Contains(b.artifactDigests(), digest)
		}
		if waits {
			jobs = append(jobs, j)
		}
	}
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
func (m *Machine) lackedBy(j *job) string { return m.firstLacking(j.needs()) }

// endDamaged ends a job whose files only its client can supply again.
func (c *Change) endDamaged(j *job, digest string) {
	remedy := "run it again"
	if j.spec.GetModel() != nil {
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
