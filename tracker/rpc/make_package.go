package rpc

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// MakePackage implements tilthv1.JobServiceServer.
func (s *Services) MakePackage(ctx context.Context, req *tilthv1.MakePackageRequest) (*tilthv1.MakePackageResponse, error) {
	tuned, err := s.storedJob(ctx, req.GetJobId())
	if err != nil {
		return nil, err
	}
	if why := wire.NoPackage(tuned); why != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "job %s %s", tuned.GetId(), why)
	}
	last, err := s.packageJob(tuned)
	if err != nil {
		return nil, err
	}
	made, err := s.usablePackage(ctx, last)
	if made != nil || err != nil {
		return &tilthv1.MakePackageResponse{Job: made}, err
	}
	model := tuned.GetSpec().GetModel().GetFile().GetDigest()
	if stored, err := s.coordinator.Artifacts().Confirm(ctx, model); !stored {
		return nil, cmp.Or(s.status(err), wire.Refuse(codes.FailedPrecondition, wire.ReasonMissingArtifact,
			"the model of job %s is no longer stored: upload artifact %s again, or submit the job again, which reuses its measurements", tuned.GetId(), model))
	}
	made, err = s.submit(ctx, packageRequest(cmp.Or(last, tuned.GetId())), packageSpec(tuned))
	return &tilthv1.MakePackageResponse{Job: made}, err
}

// usablePackage returns a job that may yet make its package, or whose package is still stored; otherwise nil.
func (s *Services) usablePackage(ctx context.Context, id string) (made *tilthv1.Job, err error) {
	if id == "" {
		return nil, nil
	}
	made, err = s.coordinator.Store().Job(id)
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return nil, StoreError(err)
	}
	usable := err == nil && !records.Final(made.GetState())
	if file := made.GetResult().GetOutputs(); file != nil {
		if usable, err = s.coordinator.Artifacts().Confirm(ctx, file.GetDigest()); err != nil {
			return nil, s.status(err)
		}
	}
	if !usable {
		return nil, nil
	}
	return made, nil
}

// packageRequest returns the id of the request for the first package of a job, or for the one after a job that failed
// to make it. Simultaneous calls thus make one job.
func packageRequest(after string) string { return "package of " + after }

// packageJob returns the newest job that makes a package of j, or "".
func (s *Services) packageJob(j *tilthv1.Job) (last string, err error) {
	if j.GetSpec().GetModel() == nil || !records.Final(j.GetState()) {
		return "", nil
	}
	for {
		next, err := s.coordinator.Store().JobByRequest(j.GetSpec().GetOwner(), packageRequest(cmp.Or(last, j.GetId())))
		if err != nil && !errors.Is(err, records.ErrNotFound) {
			return "", StoreError(err)
		}
		if next <= cmp.Or(last, j.GetId()) { // none, or a client's own request of that name
			return last, nil
		}
		last = next
	}
}

// packageSpec returns the job that makes a package of a tuned job. The package has all tasks of the model, also those
// that were not selected.
func packageSpec(tuned *tilthv1.Job) *tilthv1.JobSpec {
	s, model := tuned.GetSpec(), proto.CloneOf(tuned.GetSpec().GetModel())
	model.Tasks, model.TaskWeights, model.Seeds = "", nil, nil
	return &tilthv1.JobSpec{
		Name: wire.Label(s.GetName() + ".tar"), Owner: s.GetOwner(), Target: s.GetTarget(), Numerics: s.GetNumerics(), Model: model,
		Priority: s.GetPriority(), Private: s.GetPrivate(), Kernels: s.GetKernels(), Run: &tilthv1.RunSpec{PackageOf: tuned.GetId()},
	}
}
