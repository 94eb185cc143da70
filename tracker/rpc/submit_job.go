package rpc

import (
	"cmp"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// SubmitJob implements tilthv1.JobServiceServer.
func (s *Services) SubmitJob(ctx context.Context, req *tilthv1.SubmitJobRequest) (*tilthv1.SubmitJobResponse, error) {
	if err := cmp.Or(checkKeyName("request_id", req.GetRequestId()), checkJob(req.GetSpec())); err != nil {
		return nil, err
	}
	caller, known := access.From(ctx)
	if req.GetSpec().GetPrivate() && !known {
		return nil, status.Error(codes.FailedPrecondition, "private jobs require authentication: enable it (see docs/security.md), or submit without --private")
	}
	if known { // the owner in the spec counts only without authentication
		req.Spec.Owner = caller.Name
	}
	job, err := s.submit(ctx, req.GetRequestId(), req.GetSpec())
	return &tilthv1.SubmitJobResponse{Job: job}, err
}

// submit creates the job of a request of its owner, or returns the job that the request created earlier.
func (s *Services) submit(ctx context.Context, requestID string, spec *tilthv1.JobSpec) (job *tilthv1.Job, err error) {
	if err := s.shard.takes(spec.GetOwner()); err != nil {
		return nil, err
	}
	progress, err := firstProgress(ctx, s.known(privateOwner(spec)), spec)
	if err != nil {
		return nil, err
	}
	submission := state.NewSubmission(requestID, spec, progress)
	if err := s.coordinator.LookUp(submission); err != nil {
		return nil, s.status(err)
	}
	var before string
	err = s.tryUpdate(ctx, func(c *state.Change) (err error) {
		job, before, err = c.Submit(submission)
		return err
	})
	if err == nil && before != "" {
		job, err = s.coordinator.Store().Job(before)
		err = StoreError(err)
	}
	return job, err
}

// privateOwner returns the owner whose private records the job may use: its own if it is private, otherwise none.
func privateOwner(spec *tilthv1.JobSpec) string {
	if spec.GetPrivate() {
		return spec.GetOwner()
	}
	return ""
}

// maxKnown bounds the records read for a job. Reading that many takes about a second.
const maxKnown = 500_000

// firstProgress returns the initial progress of a job's tasks, from existing records of their workloads.
func firstProgress(ctx context.Context, look lookUp, spec *tilthv1.JobSpec) ([]*tilthv1.TaskProgress, error) {
	progress := make([]*tilthv1.TaskProgress, len(spec.GetTasks()))
	k := recordLookup{spec: spec, left: maxKnown, seen: map[[2]string]records.Known{}, look: look}
	for i, task := range spec.GetTasks() {
		progress[i] = &tilthv1.TaskProgress{}
		if spec.GetNoTransfer() {
			continue
		}
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err() // the caller has gone
		}
		known, err := k.find(task)
		if err != nil {
			return nil, StoreError(err)
		}
		progress[i].KnownTrials = uint32(known.Trials)
		progress[i].KnownBestSeconds, progress[i].KnownDefaultSeconds = known.Best.GetLatencySeconds(), known.CandidateSeconds
		progress[i].KnownBestDigest = known.Best.GetCandidate().GetDigest()
		if known.Best != nil {
			progress[i].KnownBest = state.Bare(known.Best)
		}
	}
	return progress, nil
}

// recordLookup looks up the records of a job's tasks, once per workload. It reads at most left records in all, but
// at least one per workload.
type recordLookup struct {
	spec *tilthv1.JobSpec
	left int
	seen map[[2]string]records.Known // by workload and default schedule
	look lookUp
}

// lookUp has the signature of records.Measurements.Known.
type lookUp func(target, workload, numerics, candidate string, limit int) (records.Known, error)

func (k *recordLookup) find(task *tilthv1.TaskSpec) (records.Known, error) {
	key := [2]string{task.GetWorkloadDigest(), task.GetDefaultDigest()}
	if known, is := k.seen[key]; is {
		return known, nil
	}
	// Jobs of older versions have no level and are strict.
	numerics := cmp.Or(k.spec.GetNumerics(), wire.NumericsStrict)
	known, err := k.look(k.spec.GetTarget().GetFingerprint(), key[0], numerics, key[1], max(k.left, 1))
	k.left -= known.Trials
	k.seen[key] = known
	return known, err
}
