package state

import (
	"cmp"
	"errors"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
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
