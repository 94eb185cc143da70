package tracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// SubmitJob implements tilthv1.JobServiceServer.
func (t *Tracker) SubmitJob(ctx context.Context, req *tilthv1.SubmitJobRequest) (*tilthv1.SubmitJobResponse, error) {
	if err := checkName("request_id", req.GetRequestId()); err != nil {
		return nil, err
	}
	if err := checkJob(req.GetSpec()); err != nil {
		return nil, err
	}
	// What a client says of its owner counts only where nobody is asked who they are.
	if caller, is := access.From(ctx); is {
		req.Spec.Owner = caller.Name
	}
	progress, err := t.firstProgress(req.GetSpec())
	if err != nil {
		return nil, err
	}
	var response tilthv1.SubmitJobResponse
	err = t.update(ctx, func(c *change) (err error) {
		response.Job, err = c.submit(req, progress)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &response, nil
}

func (c *change) submit(req *tilthv1.SubmitJobRequest, progress []*tilthv1.TaskProgress) (*tilthv1.Job, error) {
	if j := c.requests[req.GetRequestId()]; j != nil {
		c.repeated("SubmitJob")
		return j.whole(), nil
	}
	stored, err := c.db.JobByRequest(req.GetRequestId())
	if err == nil {
		c.repeated("SubmitJob")
		return stored, nil
	}
	if !errors.Is(err, records.ErrNotFound) {
		return nil, storeError(err)
	}
	if err := cmp.Or(c.checkQuota(req.GetSpec()), c.roomForJob(req.GetSpec())); err != nil {
		return nil, err
	}
	if err := c.keepRun(req.GetSpec().GetRun()); err != nil {
		return nil, err
	}
	c.nextJob++
	j := &job{
		id: jobID(c.nextJob), requestID: req.GetRequestId(), spec: req.GetSpec(), progress: progress, batches: map[string]*batch{},
	}
	j.meta = &tilthv1.Job{Id: j.id, CreatedAt: c.now()}
	c.write.PutSpec(j.id, j.requestID, j.spec)
	for i, task := range j.spec.GetTasks() {
		c.write.PutProgress(j.id, uint32(i), j.progress[i])
		c.write.PutWorkload(task.GetWorkloadDigest(), task.GetWorkload())
	}
	c.addJob(j)
	c.requests[j.requestID] = j
	c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, "")
	c.enqueue(j, false)
	return j.whole(), nil
}

func checkJob(spec *tilthv1.JobSpec) error {
	if spec.GetRun() != nil {
		return checkRun(spec)
	}
	target := spec.GetTarget()
	for _, f := range []struct{ field, value string }{
		{"spec.name", spec.GetName()},
		{"spec.target.fingerprint", target.GetFingerprint()},
		{"spec.target.toolchain", target.GetToolchain()},
		{"spec.target.device_class", target.GetDeviceClass()},
		{"spec.tuner", spec.GetTuner()},
	} {
		if err := checkName(f.field, f.value); err != nil {
			return err
		}
		if slices.Contains([]byte(f.value), 0) {
			return invalid(f.field, "holds a zero byte")
		}
	}
	if n := spec.GetNumerics(); n != "" && n != "strict" && n != "default" && n != "fast" {
		return invalid("spec.numerics", "is %q, not strict, default or fast", n)
	}
	if p := spec.GetPriority(); p > mostPriority {
		return invalid("spec.priority", "is %d, not 1 to %d", p, mostPriority)
	}
	if spec.GetBudget().GetTrials() == 0 && spec.GetBudget().GetTime().AsDuration() <= 0 {
		return invalid("spec.budget", "has neither trials nor time")
	}
	if len(spec.GetTasks()) == 0 {
		return invalid("spec.tasks", "is empty")
	}
	for i, task := range spec.GetTasks() {
		if err := checkTask(fmt.Sprintf("spec.tasks[%d].", i), task); err != nil {
			return err
		}
	}
	return nil
}

func checkTask(field string, task *tilthv1.TaskSpec) error {
	switch {
	case task.GetDefaultDigest() != "" && !records.ValidDigest(task.GetDefaultDigest()):
		return invalid(field+"default_digest", "%q is not a sha256", task.GetDefaultDigest())
	case len(task.GetWorkload()) == 0:
		return invalid(field+"workload", "is empty")
	case !records.IsDigest(task.GetWorkloadDigest(), task.GetWorkload()):
		return invalid(field+"workload_digest", "%q is not the workload's", task.GetWorkloadDigest())
	case !(task.GetWeight() > 0) || math.IsInf(task.GetWeight(), 0):
		return invalid(field+"weight", "is %v", task.GetWeight())
	case !(task.GetFlop() >= 0) || math.IsInf(task.GetFlop(), 0):
		return invalid(field+"flop", "is %v", task.GetFlop())
	}
	return nil
}
