package tracker

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// job is a job that has not ended.
type job struct {
	hold
	id        string
	requestID string
	spec      *tilthv1.JobSpec
	// Without spec and progress.
	meta         *tilthv1.Job
	progress     []*tilthv1.TaskProgress
	proposals    uint64
	lastSequence uint64
	finishedBy   *tilthv1.LeaseToken
	batches      map[string]*batch
}

func (j *job) subject() string { return j.id }
func (j *job) owner() *job     { return j }
func (j *job) held() *hold     { return &j.hold }

func (j *job) class() class {
	return class{tilthv1.AgentKind_AGENT_KIND_TUNER, j.spec.GetTuner()}
}

func (j *job) row() *storev1.JobRow {
	return &storev1.JobRow{
		Job: j.meta, Lease: j.lease.proto(), Attempt: j.attempt, Faults: j.faults,
		Proposals: j.proposals, FinishedBy: j.finishedBy,
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

// setState changes a job's state and tells it.
func (c *change) setState(j *job, s tilthv1.JobState, reason string) {
	j.meta.State, j.meta.Reason = s, reason
	if records.Final(s) {
		j.meta.EndedAt = c.now()
	}
	e := c.event(j)
	e.Event = &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{State: s, Reason: reason}}
	c.write.AppendEvent(j.id, e)
	c.log.Info("job changed", "job", j.id, "state", s.String(), "reason", reason)
}

// end ends a job: what is under way is dropped, what was measured stays.
func (c *change) end(j *job, s tilthv1.JobState, reason string) {
	for _, b := range j.batches {
		c.queue(b.class()).removeJob(j)
		c.release(b)
		c.forget(b)
		delete(c.moved, b)
		c.write.DropBatch(b.id)
	}
	c.queue(j.class()).removeJob(j)
	c.release(j)
	c.setState(j, s, reason)
	delete(c.jobs, j.id)
	delete(c.requests, j.requestID)
}

func jobID(n uint64) string { return fmt.Sprintf("job-%08d", n) }

func batchID(jobID string, proposal uint64) string { return fmt.Sprintf("%s.%08d", jobID, proposal) }
