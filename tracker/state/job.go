package state

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// request identifies a submission, so that the call can be repeated safely.
type request struct{ owner, id string }

// Submission is a job to be created. Creating it does the expensive work before the machine is locked.
type Submission struct {
	request
	spec     *tilthv1.JobSpec
	progress []*tilthv1.TaskProgress
	encoded  *records.NewJob
	// before is the job that an earlier call created, "" if none did, as read from the store when lapsed jobs had
	// lapsed. nil means not looked up yet.
	before *string
	lapsed uint64
}

// NewSubmission returns a submission of an owner's request. progress holds earlier results for the job's tasks. The
// machine owns all of it from then on.
func NewSubmission(requestID string, spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *Submission {
	return &Submission{
		request: request{spec.GetOwner(), requestID}, spec: spec, progress: progress, encoded: records.EncodeJob(spec, progress),
	}
}

// EndedCount counts the jobs that ended or were dropped. While it is unchanged, no request has left the machine's
// memory.
func (m *Machine) EndedCount() uint64 { return m.lapsed }

// LookUp finds the job that an earlier call created. It may be slow. The result is valid while the machine's
// EndedCount equals lapsed; otherwise Submit looks it up again.
func (s *Submission) LookUp(requested func(owner, requestID string) (jobID string, err error), lapsed uint64) error {
	before, err := requested(s.owner, s.id)
	switch {
	case errors.Is(err, records.ErrAway):
		return Refuse(StoreAway, "%v: try again later", records.ErrAway)
	case err != nil && !errors.Is(err, records.ErrNotFound):
		return refuseStore(err)
	}
	s.before, s.lapsed = &before, lapsed
	return nil
}

// Submit creates a job, or returns the one that an earlier call created, or only its id if it is no longer in memory.
func (c *Change) Submit(s *Submission) (made *tilthv1.Job, before string, err error) {
	if j := c.requests[s.request]; j != nil {
		c.Repeated("SubmitJob")
		return c.jobView(j), "", nil
	}
	if s.before == nil || s.lapsed != c.lapsed {
		if err := s.LookUp(c.cfg.Requested, c.lapsed); err != nil {
			return nil, "", err
		}
	}
	if *s.before != "" {
		c.Repeated("SubmitJob")
		return nil, *s.before, nil
	}
	if err := cmp.Or(c.checkQuota(s.spec, s.encoded.SpecBytes()), c.roomForJob(s.encoded.SpecBytes())); err != nil {
		return nil, "", err
	}
	j := &job{
		request: s.request, requestKey: records.RequestKey(s.owner, s.id), spec: s.spec, specBytes: s.encoded.SpecBytes(), storedBytes: s.encoded.SpecBytes(),
		progress: s.progress, batches: map[string]*batch{},
	}
	if err := c.pinArtifacts(j); err != nil {
		return nil, "", err
	}
	c.nextJob++
	// A restored backup reuses numbers; the store's generation keeps the ids distinct.
	j.id = fmt.Sprintf("job-%08d-%s", c.nextJob, c.generation)
	j.meta = &tilthv1.Job{Id: j.id, CreatedAt: c.now()}
	c.write.PutNew(j.id, j.requestKey, s.encoded)
	c.addJob(j)
	j.aloneUntil = c.cfg.Clock().Add(c.cfg.LeaseTimeout)
	c.requests[j.request] = j
	c.setState(j, j.waiting(), "")
	c.enqueue(j, false)
	c.Retain(s.owner)
	return c.jobView(j), "", nil
}

// job is a job that has not ended.
type job struct {
	hold
	id string
	request
	requestKey []byte
	spec       *tilthv1.JobSpec
	specBytes  int64
	// storedBytes is the stored size of the specification and the events.
	storedBytes int64
	// meta has neither spec nor progress.
	meta         *tilthv1.Job
	progress     []*tilthv1.TaskProgress
	proposed     int    // trials, over all tasks
	proposals    uint64 // batches
	lastSequence uint64
	finishedBy   *tilthv1.LeaseToken
	batches      map[string]*batch
	// candidateBytes is the total size of their candidates.
	candidateBytes int64
	// blocked is why nothing of the job could run at the last tick (0 = it could), blockedSince its wall-clock start.
	blocked      tilthv1.WaitReason
	blockedSince time.Time
	// aloneUntil is when an attached job ends, by Clock, unless its client opens a new stream.
	aloneUntil time.Time
	// fruitless counts the consecutive failed attempts at batches, by stage, that were not the candidates' fault.
	fruitless map[storev1.Stage]streak
	timeSpent
}

func (j *job) subject() string { return j.id }
func (j *job) parent() *job    { return j }
func (j *job) held() *hold     { return &j.hold }
func (j *job) size() int       { return 1 }

func (j *job) class() class {
	if j.makesPackage() {
		return class{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, name: j.spec.GetTarget().GetToolchain(), runs: true}
	}
	if j.runs() {
		return class{
			kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass(), runs: true, device: j.spec.GetRun().GetDevice(),
		}
	}
	if j.reads() {
		return readers
	}
	return j.searchClass()
}

func (j *job) searchClass() class {
	return class{kind: tilthv1.AgentKind_AGENT_KIND_TUNER, name: j.spec.GetTuner()}
}

// classes returns the classes of all work of the job: reading the model, search, builds and measurements.
func (j *job) classes() []class {
	if j.runs() {
		return []class{j.class()}
	}
	all := []class{
		j.searchClass(),
		{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, name: j.spec.GetTarget().GetToolchain()}, // or anyBuilder
		deviceClass(j),
	}
	if j.reads() {
		all = slices.Insert(all, 1, readers)
	}
	return all
}

// inOrder returns the open batches in the order of their proposals.
func (j *job) inOrder() []*batch {
	return slices.SortedFunc(maps.Values(j.batches), func(a, b *batch) int { return cmp.Compare(a.proposal, b.proposal) })
}

func (j *job) paused() bool { return j.meta.GetState() == tilthv1.JobState_JOB_STATE_PAUSED }

func (j *job) row() *storev1.JobRow {
	return &storev1.JobRow{
		Job: j.meta, Lease: j.lease.proto(), Attempt: j.attempt, Faults: j.faults,
		Proposals: j.proposals, FinishedBy: j.finishedBy, FailedBy: j.failedBy,
		RequestKey: j.requestKey, StoredBytes: uint64(j.storedBytes),
		Owner: records.Owner{Name: j.spec.GetOwner(), Private: j.spec.GetPrivate()}.Row(),
	}
}

// whole returns the job as clients see it.
func (j *job) whole() *tilthv1.Job {
	out := proto.CloneOf(j.meta)
	out.Spec = j.spec
	for _, p := range j.progress {
		out.Progress = append(out.Progress, proto.CloneOf(p))
	}
	return out
}

// setState changes the job's state and records an event.
func (c *Change) setState(j *job, s tilthv1.JobState, reason string) {
	reason = records.Cut(reason, records.MaxReasonBytes)
	j.meta.State, j.meta.Reason = s, reason
	if records.Final(s) {
		j.meta.EndedAt = c.now()
	}
	c.store(j, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{State: s, Reason: reason}}})
	c.log.Info("job changed", "job", j.id, "state", s.String(), "reason", reason)
}

// end ends a job. It drops open batches; recorded measurements stay.
func (c *Change) end(j *job, s tilthv1.JobState, reason string) {
	for _, b := range j.inOrder() {
		c.release(b)
		c.cancelRetry(b)
		c.dropBatch(b)
		delete(c.moved, b)
		c.write.DropBatch(b.id)
	}
	c.release(j)
	c.leaveQueues(j)
	c.artifacts.Unpin(j.needs()...)
	c.useModel(j)
	c.setState(j, s, reason)
	c.dropJob(j)
	c.keepEnded(&policy.RetainedJob{ID: j.id, Owner: j.spec.GetOwner(), Ended: j.meta.GetEndedAt().AsTime(), Bytes: j.storedBytes})
	c.Retain(j.spec.GetOwner())
	delete(c.requests, j.request)
	c.lapsed++
	c.keepClosed(j.id, j.proposals)
}

// IsJobID reports whether text could be a job id of any generation. Ids from before generations existed have no
// suffix.
func IsJobID(text string) bool {
	var n uint64
	_, err := fmt.Sscanf(text, "job-%d", &n)
	number, generation, hasGeneration := strings.Cut(strings.TrimPrefix(text, "job-"), "-")
	return err == nil && fmt.Sprintf("%08d", n) == number && (!hasGeneration || records.IsGeneration(generation))
}

// batchID returns the prefix of a batch id. It is the whole id if the batch was proposed in the generation that
// created the job.
func batchID(jobID string, proposal uint64) string { return fmt.Sprintf("%s.%08d", jobID, proposal) }

// batchIn returns the id of a batch proposed in a generation.
func batchIn(jobID string, proposal uint64, generation string) string {
	id := batchID(jobID, proposal)
	if strings.HasSuffix(jobID, "-"+generation) {
		return id
	}
	return id + "-" + generation
}

// batchOf returns the open batch of a proposal, or nil.
func (j *job) batchOf(proposal uint64) *batch {
	for _, b := range j.batches {
		if b.proposal == proposal {
			return b
		}
	}
	return nil
}

// Finish ends a job at its tuner's request. ok is false if the lease is not in force.
func (c *Change) Finish(lease *tilthv1.LeaseToken, state tilthv1.JobState, reason string) (ok bool) {
	j, ok := c.lookUp(lease).(*job)
	if !ok || !j.searches() {
		return false
	}
	j.finishedBy = j.lease.proto()
	j.lease.agent.completed++
	j.lease.agent.failures.Reset()
	c.end(j, state, reason)
	return true
}

// Pause takes a job out of the queues and from its tuner. Builders and runners finish the leases that they hold. ok is
// false if the job has ended or never existed.
func (c *Change) Pause(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j == nil || j.paused() {
		return j != nil
	}
	c.withdraw(j)
	c.release(j)
	j.meta.PausedAt = c.now()
	c.setState(j, tilthv1.JobState_JOB_STATE_PAUSED, reason)
	return true
}

// Resume requeues all work of a paused job that no agent holds; ok is as for Pause.
func (c *Change) Resume(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j == nil || !j.paused() {
		return j != nil
	}
	if j.meta.GetStartedAt() != nil {
		// The wall clock may have been set back.
		pause := max(c.cfg.Now().Sub(j.meta.GetPausedAt().AsTime()), 0)
		j.meta.Paused = durationpb.New(j.meta.GetPaused().AsDuration() + pause.Round(time.Millisecond))
	}
	j.meta.PausedAt = nil
	c.setState(j, j.waiting(), reason)
	for _, b := range j.inOrder() {
		if b.lease == nil && b.retry == nil { // a scheduled retry keeps its time
			c.enqueue(b, false)
		}
	}
	c.enqueue(j, false)
	return true
}

// Cancel ends an open job.
func (c *Change) Cancel(id, reason string) {
	if j := c.jobs[id]; j != nil {
		c.end(j, tilthv1.JobState_JOB_STATE_CANCELLED, reason)
	}
}
