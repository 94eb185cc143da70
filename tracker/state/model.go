package state

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// readers is the class of tuners that read models. anyBuilder stands for all builders, for jobs that leave the
// toolchain open; nothing is queued for it.
var (
	readers    = class{kind: tilthv1.AgentKind_AGENT_KIND_TUNER, name: wire.ReadsModels, reads: true}
	anyBuilder = class{kind: tilthv1.AgentKind_AGENT_KIND_BUILDER}
)

// reads reports whether the job's model has yet to be read, so that its tasks are unknown.
func (j *job) reads() bool {
	return j.spec.GetModel() != nil && len(j.spec.GetTasks()) == 0 && !j.runs()
}

// searches reports whether the job needs a tuner to search.
func (j *job) searches() bool { return !j.runs() && !j.reads() }

// waiting returns the state of the job while no agent holds it.
func (j *job) waiting() tilthv1.JobState {
	if j.reads() {
		return tilthv1.JobState_JOB_STATE_READING
	}
	return tilthv1.JobState_JOB_STATE_QUEUED
}

// readable reports whether a tuner could read the job's model now. That requires a device description and toolchains.
func (m *Machine) readable(w work) bool {
	j, is := w.(*job)
	if !is || !j.reads() {
		return true
	}
	return m.offered(deviceClass(j)) && (j.spec.GetTarget().GetToolchain() != "" || m.offered(anyBuilder))
}

// offered reports whether an agent with a session offers the class.
func (m *Machine) offered(c class) bool {
	q := m.queues[c]
	return q != nil && len(q.offering) > 0
}

func deviceClass(j *job) class {
	return class{kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, name: j.spec.GetTarget().GetDeviceClass()}
}

// described returns the description of the job's device class from the agent first by name, or nil without one.
func (m *Machine) described(j *job) (found *tilthv1.DeviceClass) {
	c, by := deviceClass(j), ""
	if !m.offered(c) {
		return nil
	}
	for a := range m.queues[c].offering {
		for _, d := range a.spec.GetDeviceClasses() {
			if d.GetName() == c.name && (found == nil || a.name() < by) {
				found, by = d, a.name()
			}
		}
	}
	return found
}

// toolchains returns the toolchains that the job may use, sorted.
func (m *Machine) toolchains(j *job) []string {
	if own := j.spec.GetTarget().GetToolchain(); own != "" {
		return []string{own}
	}
	if !m.offered(anyBuilder) {
		return nil
	}
	var all []string
	for a := range m.queues[anyBuilder].offering {
		all = append(all, a.spec.GetToolchains()...)
	}
	slices.SortFunc(all, strings.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), wire.MaxOffers)]
}

func (c *Change) leaseModel(j *job) *tilthv1.LeaseWorkResponse {
	c.setState(j, tilthv1.JobState_JOB_STATE_READING, j.lease.agent.name()+" reads the model")
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Model{Model: &tilthv1.ModelWork{
		Job: j.whole(), DeviceClass: c.described(j), Toolchains: c.toolchains(j),
	}}}
}

// useModel marks the model of a job as used. Other artifacts are then evicted first, which keeps it for a package.
func (c *Change) useModel(j *job) {
	if file := j.spec.GetModel().GetFile(); file != nil {
		c.artifacts.Pin(file.GetDigest())
		c.artifacts.Unpin(file.GetDigest())
	}
}

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
	a.failures.Reset()
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
