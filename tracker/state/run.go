package state

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// runs reports whether the job runs packages, or makes one, instead of tuning.
func (j *job) runs() bool { return j.spec.GetRun() != nil }

// makesPackage reports whether a builder makes a package for the job.
func (j *job) makesPackage() bool { return j.spec.GetRun().GetPackageOf() != "" }

// maxAlone is how long an attached job goes on without a new stream of its client, which begins one each second. An
// open stream is no sign of life, since a cut line leaves it open. With the interval of ticks, it stays below 5 s.
const maxAlone = 3500 * time.Millisecond

// Attach records that the client of an attached job has begun a stream.
func (m *Machine) Attach(jobID string) {
	if j := m.jobs[jobID]; j != nil {
		j.aloneUntil = m.cfg.Clock().Add(maxAlone)
	}
}

// endAbandoned cancels the jobs whose clients are gone. A late tick extends their time, because the calls of clients
// may have been late for the same reason.
func (c *Change) endAbandoned(now time.Time, sinceLast time.Duration) {
	var abandoned []string
	for id, j := range c.jobs {
		switch {
		case !j.spec.GetRun().GetAttached() || !now.After(j.aloneUntil):
		case sinceLast > maxAlone/2:
			c.Machine.Attach(id)
		default:
			abandoned = append(abandoned, id)
		}
	}
	slices.Sort(abandoned)
	for _, id := range abandoned {
		c.end(c.jobs[id], tilthv1.JobState_JOB_STATE_CANCELLED, "its client is gone")
	}
}

// needs returns the artifacts that the job itself needs: a run's packages and inputs, or a model to read or compile.
func (j *job) needs() (digests []string) {
	if j.reads() || j.makesPackage() {
		for _, file := range wire.ModelFiles(j.spec.GetModel()) {
			digests = append(digests, file.GetDigest())
		}
		slices.Sort(digests)
		return slices.Compact(digests)
	}
	run := j.spec.GetRun()
	for _, p := range run.GetPackages() {
		digests = append(digests, p.GetArtifact().GetDigest())
	}
	if run.GetInputs() != nil {
		digests = append(digests, run.GetInputs().GetDigest())
	}
	return digests
}

// pinArtifacts pins the artifacts that a job needs. It returns an error that names a missing one.
func (c *Change) pinArtifacts(j *job) error {
	if digest := c.lackedBy(j); digest != "" {
		return refuseArtifact(digest)
	}
	c.artifacts.Pin(j.needs()...)
	return nil
}

// finishRun accepts the outcome of a run.
func (c *Change) finishRun(j *job, req *tilthv1.ReportRunRequest) error {
	a := j.lease.agent
	if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		j.finishedBy = j.lease.proto()
		c.failAttempt(j, class, req.GetInfraMessage())
		return nil
	}
	if result := req.GetResult(); result != nil {
		if got, want := len(result.GetPackages()), len(j.spec.GetRun().GetPackages()); got != want {
			return refuseField("result.packages", "are %d, the job has %d", got, want)
		}
		digest := result.GetOutputs().GetDigest()
		if digest == "" && j.makesPackage() {
			return refuseField("result.outputs", "is not set: it is the package")
		}
		if digest != "" {
			complete, size := c.artifacts.Stat(digest)
			if !complete {
				return refuseArtifact(digest)
			}
			result.Outputs.SizeBytes = uint64(size)
		}
	}
	j.finishedBy = j.lease.proto()
	a.completed++
	a.failures.Reset()
	if req.GetFailure() != "" {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, clip(req.GetFailure(), maxMessageBytes))
		return nil
	}
	j.meta.Result = proto.CloneOf(req.GetResult())
	j.meta.Result.Device = a.name()
	how := "ran on "
	if j.makesPackage() {
		how = "compiled by "
	}
	c.end(j, tilthv1.JobState_JOB_STATE_DONE, how+a.name())
	return nil
}

// ReportRun accepts the outcome of a run. ok is false if the machine does not know the lease.
func (c *Change) ReportRun(req *tilthv1.ReportRunRequest) (ok bool, err error) {
	j, ok := c.lookUp(req.GetLease()).(*job)
	if !ok || !j.runs() {
		j := c.jobs[req.GetLease().GetSubject()]
		return j != nil && proto.Equal(j.finishedBy, req.GetLease()), nil // it has been retried since
	}
	return true, c.finishRun(j, req)
}
