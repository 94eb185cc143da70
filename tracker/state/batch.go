package state

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// batch is a batch in progress: candidates of one task that are built and measured together.
type batch struct {
	hold
	id            string
	job           *job
	task          uint32
	proposal      uint64
	mode          tilthv1.BatchMode
	remeasured    string
	firstTrial    uint32
	eventSequence uint64
	stage         storev1.Stage
	candidates    []*tilthv1.Candidate
	sizeBytes     int64 // of the candidates
	recorded      []byte
	open          int       // trials not recorded yet
	predicted     []float32 // seconds per candidate; empty when the search predicted none
	buildSeconds  []float64
	artifacts     []*tilthv1.ArtifactRef
	builtBy       string // owner of the builder that produced the artifacts
	settled       []*tilthv1.LeaseToken
}

func (b *batch) subject() string { return b.id }
func (b *batch) parent() *job    { return b.job }
func (b *batch) held() *hold     { return &b.hold }
func (b *batch) size() int       { return b.open }

func (b *batch) class() class {
	if b.stage == storev1.Stage_STAGE_BUILD {
		return b.buildClass()
	}
	return deviceClass(b.job)
}

func (b *batch) buildClass() class {
	return class{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, name: b.job.spec.GetTarget().GetToolchain()}
}

func (b *batch) row() *storev1.BatchRow {
	return &storev1.BatchRow{
		JobId: b.job.id, TaskIndex: b.task, Proposal: b.proposal, FirstTrial: b.firstTrial, EventSequence: b.eventSequence,
		Stage: b.stage, Lease: b.lease.proto(), Attempt: b.attempt, Faults: b.faults, Settled: b.settled,
		Recorded: b.recorded, BuildSeconds: b.buildSeconds, Artifacts: b.artifacts, Mode: b.mode,
		FailedBy: b.failedBy, Failures: b.failures, Remeasured: b.remeasured, BuiltBy: b.builtBy,
	}
}

func (b *batch) spec() *tilthv1.TaskSpec { return b.job.spec.GetTasks()[b.task] }

// pending returns the candidates whose trials are not recorded.
func (b *batch) pending() (out []*tilthv1.Candidate) {
	for i, c := range b.candidates {
		if b.recorded[i] == 0 {
			out = append(out, c)
		}
	}
	return out
}

// pendingNames returns the pending candidates without traces and origins. A runner has their objects and needs
// neither.
func (b *batch) pendingNames() (out []*tilthv1.Candidate) {
	for _, c := range b.pending() {
		out = append(out, &tilthv1.Candidate{Digest: c.GetDigest(), Trial: c.GetTrial(), Numerics: c.GetNumerics(), Multiplications: c.GetMultiplications()})
	}
	return out
}

// place returns the index of a candidate, matched by digest and trial, or -1.
func (b *batch) place(c *tilthv1.Candidate) int {
	i := int64(c.GetTrial()) - int64(b.firstTrial)
	if i < 0 || i >= int64(len(b.candidates)) || b.candidates[i].GetDigest() != c.GetDigest() {
		return -1
	}
	return int(i)
}

// places maps the digests of all candidates to their indices.
func (b *batch) places() map[string]int {
	places := make(map[string]int, len(b.candidates))
	for i, c := range b.candidates {
		places[c.GetDigest()] = i
	}
	return places
}

// predictedSeconds returns the latency predicted for a candidate, or 0.
func (b *batch) predictedSeconds(i int) float32 {
	if i < len(b.predicted) {
		return b.predicted[i]
	}
	return 0
}

// settle records that the current lease ended with an accepted report.
func (b *batch) settle() { b.settled = append(b.settled, b.lease.proto()) }

// Holds reports whether tokens contains token.
func Holds(tokens []*tilthv1.LeaseToken, token *tilthv1.LeaseToken) bool {
	return slices.ContainsFunc(tokens, func(t *tilthv1.LeaseToken) bool { return proto.Equal(t, token) })
}

func (b *batch) artifactDigests() []string { return digestsOf(b.artifacts) }

func digestsOf(artifacts []*tilthv1.ArtifactRef) (out []string) {
	for _, a := range artifacts {
		out = append(out, a.GetDigest())
	}
	return out
}

// closeBatch ends a finished batch. Its row stays, so that repeated calls are recognized.
func (c *Change) closeBatch(b *batch) {
	c.dropBatch(b)
	delete(c.moved, b)
	c.write.CloseBatch(b.id, &storev1.BatchRow{
		JobId: b.job.id, TaskIndex: b.task, Proposal: b.proposal, FirstTrial: b.firstTrial,
		Stage: storev1.Stage_STAGE_CLOSED, Settled: b.settled,
	})
}

// toBuild moves a batch to the build stage and unpins its artifacts.
func (m *Machine) toBuild(b *batch) {
	m.unpin(b)
	b.stage, b.failedBy = storev1.Stage_STAGE_BUILD, nil
}

// artifactsThere reports whether the artifact store has everything that a runner needs.
func (m *Machine) artifactsThere(b *batch) bool { return m.firstLacking(b.artifactDigests()) == "" }

// firstLacking returns the first of the artifacts that the store lacks, or "".
func (m *Machine) firstLacking(digests []string) string {
	for _, digest := range digests {
		if complete, _ := m.artifacts.Stat(digest); !complete {
			return digest
		}
	}
	return ""
}

// recordTrial records the outcome of one candidate, exactly once. The record, the event and the progress belong to the
// change that settles the lease. The caller must store the event with storeTrials.
func (c *Change) recordTrial(b *batch, i int, m *tilthv1.Measurement) *tilthv1.JobEvent {
	m.At = c.now()
	records.ClearPreference(m)
	m.Candidate = b.candidates[i]
	m.Message = records.Cut(m.GetMessage(), records.MaxMessageBytes)
	m.Remeasured = cmp.Or(m.GetRemeasured(), b.remeasured)
	b.recorded[i] = 1
	b.open--
	b.faults, b.failures = 0, 0
	c.move(b)
	p := b.job.progress[b.task]
	p.Trials++
	keepBest(p, m)
	switch {
	case m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE:
		fail(p, m)
	case m.GetCandidate().GetDigest() == b.spec().GetDefaultDigest():
		p.DefaultSeconds = m.GetLatencySeconds() // the baseline for the job's gain
	}
	c.addFact(Trial{m})
	return c.event(b.job, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
		TaskIndex: b.task, BatchId: b.id, Measurement: m, BestSeconds: p.GetBestSeconds(), PredictedSeconds: b.predictedSeconds(i),
	}}})
}

// trialRowBytes is the approximate size of a trial in its job's log.
const trialRowBytes = 48

// storeTrials stores the trials that the change records for a batch, and the task's progress.
func (c *Change) storeTrials(b *batch, trials []*tilthv1.JobEvent) {
	if len(trials) > 0 {
		c.grow(b.job, trialRowBytes*int64(len(trials)))
		c.write.AppendTrials(b.job.id, records.TargetOf(b.job.spec), b.spec(), trials)
	}
	c.write.PutProgress(b.job.id, b.task, b.job.progress[b.task])
}

// keepBest updates the best of a task's trials with one measurement. A best that is measured again and refuted leaves
// the task without one until the next verified measurement. In a batch of finalists the best is measured first, its
// rivals after it.
func keepBest(p *tilthv1.TaskProgress, m *tilthv1.Measurement) {
	best := bestOf(p)
	switch {
	case m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE:
		if records.Supersedes(m, best) {
			p.BestSeconds, p.BestTrace, p.Best = m.GetLatencySeconds(), m.GetCandidate().GetTrace(), Bare(m)
		}
	case best != nil && records.Disqualifies(m) && m.GetCandidate().GetDigest() == best.GetCandidate().GetDigest():
		p.BestSeconds, p.BestTrace, p.Best = 0, nil, nil
	}
}

// bestOf returns the measurement of the best so far, or nil. Progress stored by versions that did not keep
// measurements has only the latency.
func bestOf(p *tilthv1.TaskProgress) *tilthv1.Measurement {
	if p.GetBest() != nil || p.GetBestSeconds() == 0 {
		return p.GetBest()
	}
	return &tilthv1.Measurement{
		Candidate:      &tilthv1.Candidate{Digest: records.Digest(p.GetBestTrace())},
		SamplesSeconds: []float64{p.GetBestSeconds()}, LatencySeconds: p.GetBestSeconds(),
	}
}

// Bare returns a copy of m without the fields that only builders and tuners read.
func Bare(m *tilthv1.Measurement) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{
			Digest: m.GetCandidate().GetDigest(), Trial: m.GetCandidate().GetTrial(), Numerics: m.GetCandidate().GetNumerics(),
			Multiplications: m.GetCandidate().GetMultiplications(), Algorithms: m.GetCandidate().GetAlgorithms(),
		},
		Error: m.GetError(), SamplesSeconds: m.GetSamplesSeconds(), LatencySeconds: m.GetLatencySeconds(), Interval: m.GetInterval(),
		CalibrationRatio: m.GetCalibrationRatio(), Device: m.GetDevice(), At: m.GetAt(), Remeasured: m.GetRemeasured(),
		EnergyJoules: m.GetEnergyJoules(), PreferredSeconds: m.GetPreferredSeconds(), PreferredTo: m.GetPreferredTo(),
	}
}

// maxMessageBytes bounds a message kept with a job; the record has it in full.
const maxMessageBytes = 500

// fail counts a failed trial and keeps the first message of each error class.
func fail(p *tilthv1.TaskProgress, m *tilthv1.Measurement) {
	class := m.GetError().String()
	if p.Errors == nil {
		p.Errors = map[string]uint32{}
	}
	p.Errors[class]++
	if p.Errors[class] > 1 {
		return
	}
	if p.Messages == nil {
		p.Messages = map[string]string{}
	}
	p.Messages[class] = clip(m.GetMessage(), maxMessageBytes)
}

// clip truncates text to at most limit bytes, without splitting a character, and marks the cut with an ellipsis.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.TrimRight(text[:limit], " ") + "…"
}

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
	c.store(j, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		BatchId: b.id, Proposal: b.proposal, TaskIndex: b.task, Candidates: b.candidates, Mode: b.mode, SearchSeconds: req.GetSearchSeconds(),
		Remeasured: b.remeasured, PredictedSeconds: b.predicted,
	}}})
	b.eventSequence = j.lastSequence
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
	if q := c.queues[deviceClass(j)]; q != nil {
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
