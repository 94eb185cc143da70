package state

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Reading is a tuner's report about a model. Creating it does the expensive work before the machine is locked.
type Reading struct {
	lease *tilthv1.LeaseToken
	// spec is the job's specification with its tasks; nil if the attempt or the model failed.
	spec     *tilthv1.JobSpec
	progress []*tilthv1.TaskProgress
	encoded  *records.NewJob

	failure, infra string
}

// NewReading returns the reading of a model. spec has its tasks, progress what is already known of them. The machine
// owns both from then on.
func NewReading(lease *tilthv1.LeaseToken, spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *Reading {
	return &Reading{lease: lease, spec: spec, progress: progress, encoded: records.EncodeJob(spec, progress)}
}

// FailedReading returns the reading of a model that cannot be tuned or could not be read.
func FailedReading(req *tilthv1.ReportModelRequest) *Reading {
	return &Reading{lease: req.GetLease(), failure: req.GetFailure(), infra: req.GetInfraMessage()}
}

// ReadBy returns the job whose model the lease is for, or nil if the lease is not in force.
func (m *Machine) ReadBy(lease *tilthv1.LeaseToken) *tilthv1.JobSpec {
	if j, ok := m.lookUp(lease).(*job); ok && j.reads() {
		return j.spec
	}
	return nil
}

// ReportModel accepts the outcome of reading a model. ok is false if the machine does not know the lease.
func (c *Change) ReportModel(r *Reading) (ok bool, err error) {
	j, ok := c.lookUp(r.lease).(*job)
	if !ok || !j.reads() {
		j := c.jobs[r.lease.GetSubject()]
		return j != nil && proto.Equal(j.finishedBy, r.lease), nil // the job has moved on
	}
	if r.infra != "" {
		j.finishedBy = j.lease.proto()
		c.failAttempt(j, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, r.infra)
		return true, nil
	}
	failure := r.failure
	if failure == "" {
		if failure, err = c.checkReading(j, r); err != nil {
			return true, err
		}
	}
	a := j.lease.agent
	j.finishedBy = j.lease.proto()
	a.completed++
	a.failures.Forgive()
	if failure != "" {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, clip(failure, maxMessageBytes))
		return true, nil
	}
	c.setTasks(j, r)
	c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, fmt.Sprintf("%s read the model: tasks: %d", a.name(), len(j.spec.GetTasks())))
	c.enqueue(j, false)
	return true, nil
}

// checkReading returns an error for tasks of another target, or for which the tracker has no room. If they exceed the
// owner's quota, it returns the reason why the job fails.
func (c *Change) checkReading(j *job, r *Reading) (failure string, err error) {
	asked, got := j.spec.GetTarget(), r.spec.GetTarget()
	switch {
	case got.GetDeviceClass() != asked.GetDeviceClass():
		return "", refuseField("target.device_class", "is %q, the job's is %q", got.GetDeviceClass(), asked.GetDeviceClass())
	case asked.GetToolchain() != "" && got.GetToolchain() != asked.GetToolchain():
		return "", refuseField("target.toolchain", "is %q, the job's is %q", got.GetToolchain(), asked.GetToolchain())
	}
	more := r.encoded.SpecBytes() - j.specBytes
	share, has := c.cfg.Shares.Of(j.spec.GetOwner()), c.usageOf(j.spec.GetOwner())
	if x := share.MoreStored(j.spec.GetOwner(), has, more); x != nil {
		return x.Text, nil
	}
	return "", c.roomForSpec(more)
}

// setTasks gives a job the tasks of its model, and unpins the model.
func (c *Change) setTasks(j *job, r *Reading) {
	c.release(j)
	c.leaveQueues(j)
	c.artifacts.Unpin(j.needs()...)
	more := r.encoded.SpecBytes() - j.specBytes
	j.spec, j.progress, j.specBytes = r.spec, r.progress, r.encoded.SpecBytes()
	j.faults, j.failures, j.failedBy = 0, 0, nil
	c.load.specBytes += more
	c.grow(j, more)
	c.write.PutNew(j.id, j.requestKey, r.encoded)
}
