package state

import (
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
		if digest := result.GetOutputs().GetDigest(); digest != "" {
			complete, size := c.artifacts.Stat(digest)
			if !complete {
				return refuseArtifact(digest)
			}
			result.Outputs.SizeBytes = uint64(size)
		}
	}
	j.finishedBy = j.lease.proto()
	a.completed++
	a.failures.Forgive()
	if req.GetFailure() != "" {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, clip(req.GetFailure(), maxMessageBytes))
		return nil
	}
	j.meta.Result = proto.CloneOf(req.GetResult())
	j.meta.Result.Device = a.name()
	c.end(j, tilthv1.JobState_JOB_STATE_DONE, "ran on "+a.name())
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
