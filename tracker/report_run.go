package tracker

import (
	"context"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ReportRun implements tilthv1.RunServiceServer.
func (t *Tracker) ReportRun(ctx context.Context, req *tilthv1.ReportRunRequest) (*tilthv1.ReportRunResponse, error) {
	if err := checkRunReport(req); err != nil {
		return nil, err
	}
	held := false
	err := t.update(ctx, func(c *change) error {
		j, ok := c.lookUp(req.GetLease()).(*job)
		if !ok || !j.runs() {
			j := c.jobs[req.GetLease().GetSubject()]
			held = j != nil && proto.Equal(j.finishedBy, req.GetLease()) // it was tried again since
			return nil
		}
		held = true
		return c.ran(j, req)
	})
	if err != nil {
		return nil, err
	}
	if !held && !t.finishedBy(req.GetLease()) {
		return nil, t.stale("ReportRun", req.GetLease())
	}
	return &tilthv1.ReportRunResponse{}, nil
}

func checkRunReport(req *tilthv1.ReportRunRequest) error {
	said := 0
	if req.GetResult() != nil {
		said++
	}
	if req.GetFailure() != "" {
		said++
	}
	if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		said++
		if !records.InfraFault(class) || class == tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA {
			return invalid("infra_error", "is %v, not DEVICE_INFRA or FARM_INFRA", class)
		}
	}
	if said != 1 {
		return invalid("result", "and failure and infra_error: %d of them are set, not one", said)
	}
	if outputs := req.GetResult().GetOutputs(); outputs != nil {
		return checkArtifact("result.outputs", outputs)
	}
	return nil
}

// ran takes in what became of a run.
func (c *change) ran(j *job, req *tilthv1.ReportRunRequest) error {
	a := j.lease.agent
	if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		j.finishedBy = j.lease.proto()
		c.lose(j, class, req.GetInfraMessage())
		return nil
	}
	if result := req.GetResult(); result != nil {
		if got, want := len(result.GetPackages()), len(j.spec.GetRun().GetPackages()); got != want {
			return invalid("result.packages", "are %d, the job has %d", got, want)
		}
		if digest := result.GetOutputs().GetDigest(); digest != "" {
			complete, size := c.artifacts.Stat(digest)
			if !complete {
				return missingArtifact(digest)
			}
			result.Outputs.SizeBytes = uint64(size)
		}
	}
	j.finishedBy = j.lease.proto()
	a.completed++
	a.rest.Forgive()
	if req.GetFailure() != "" {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, clip(req.GetFailure(), maxMessageBytes))
		return nil
	}
	j.meta.Result = proto.CloneOf(req.GetResult())
	j.meta.Result.Device = a.name()
	c.end(j, tilthv1.JobState_JOB_STATE_DONE, "ran on "+a.name())
	return nil
}
