package rpc

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportModel implements tilthv1.SearchServiceServer.
func (s *Services) ReportModel(ctx context.Context, req *tilthv1.ReportModelRequest) (*tilthv1.ReportModelResponse, error) {
	if err := checkModelReport(req); err != nil {
		return nil, err
	}
	reading, err := s.reading(ctx, req)
	if err != nil {
		return nil, err
	}
	err = s.reportOnJob(ctx, "ReportModel", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportModel(reading) })
	return &tilthv1.ReportModelResponse{}, err
}

func checkModelReport(req *tilthv1.ReportModelRequest) error {
	said := 0
	for _, is := range []bool{len(req.GetTasks()) > 0, req.GetFailure() != "", req.GetInfraMessage() != ""} {
		if is {
			said++
		}
	}
	switch {
	case said != 1:
		return invalid("tasks", "and failure and infra_message: %d of them are set, not one", said)
	case len(req.GetTasks()) > 0:
		return cmp.Or(checkTargetSpec("", req.GetTarget()), checkTasks("", req.GetTasks()))
	}
	return nil
}

// reading returns the reported model with what is known of its tasks. It skips the lookup for a lease that is no
// longer held.
func (s *Services) reading(ctx context.Context, req *tilthv1.ReportModelRequest) (*state.Reading, error) {
	var job *tilthv1.JobSpec
	s.coordinator.Read(func(m *state.Machine) { job = m.ReadBy(req.GetLease()) })
	if job == nil || len(req.GetTasks()) == 0 {
		return state.FailedReading(req), nil
	}
	spec := proto.CloneOf(job)
	spec.Target, spec.Tasks = req.GetTarget(), req.GetTasks()
	progress, err := firstProgress(ctx, s.known(privateOwner(spec)), spec)
	if err != nil {
		return nil, err
	}
	return state.NewReading(req.GetLease(), spec, progress), nil
}
