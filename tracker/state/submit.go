package state

import (
	"cmp"
	"errors"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// request is what makes a call to submit a job safe to repeat: an owner's request id.
type request struct{ owner, id string }

// Submission is a job that somebody wants, with all that takes its time: it is made before anybody else has to wait.
type Submission struct {
	request
	spec     *tilthv1.JobSpec
	progress []*tilthv1.TaskProgress
	encoded  *records.NewJob
	// before is the job that the request made before, empty when none, as the store had it while so many had lapsed;
	// nil = nobody has looked.
	before *string
	lapsed uint64
}

// NewSubmission is a job that its owner wants by a request id. progress is what is known of its tasks already. All of
// it is the machine's from then on.
func NewSubmission(requestID string, spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *Submission {
	return &Submission{
		request: request{spec.GetOwner(), requestID}, spec: spec, progress: progress, encoded: records.EncodeJob(spec, progress),
	}
}

// Lapsed is how many jobs have ended or were dropped. While it stays the same, no request leaves the machine's memory.
func (m *Machine) Lapsed() uint64 { return m.lapsed }

// LookUp asks for the job that the request made before, which may take its time, and holds as long as the machine
// says that so many jobs have lapsed. Without it, Submit asks itself.
func (s *Submission) LookUp(requested func(owner, requestID string) (jobID string, err error), lapsed uint64) error {
	before, err := requested(s.owner, s.id)
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return unreadable(err)
	}
	s.before, s.lapsed = &before, lapsed
	return nil
}

// unreadable refuses a call that needs something of the store which that does not tell.
func unreadable(err error) error {
	if errors.Is(err, records.ErrAway) {
		return refusal.New(refusal.StoreAway, "%v: try again later", records.ErrAway)
	}
	return refusal.Store(err)
}

// Submit makes a job, or returns the one that the request made before, or its id if it is in the store only.
func (c *Change) Submit(s *Submission) (made *tilthv1.Job, before string, err error) {
	if j := c.requests[s.request]; j != nil {
		c.Repeated("SubmitJob")
		return c.shown(j), "", nil
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
	if err := c.keep(j); err != nil {
		return nil, "", err
	}
	c.nextJob++
	j.id = jobID(c.nextJob, c.life)
	j.meta = &tilthv1.Job{Id: j.id, CreatedAt: c.now()}
	c.write.PutNew(j.id, j.requestKey, s.encoded)
	c.addJob(j)
	c.requests[j.request] = j
	c.setState(j, j.waiting(), "")
	c.enqueue(j, false)
	c.retainOf(s.owner)
	return c.shown(j), "", nil
}
