package agent

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// reportFailure reports that an attempt failed on the agent's side, so that it is retried immediately. A
// tuner's failure ends its job, because the same search would fail again.
func (s *session) reportFailure(ctx context.Context, work *tilthv1.LeaseWorkResponse, cause error) error {
	token := work.GetLease()
	reason := FailureMessage(cause.Error())
	return Report(ctx, s.log, "report failure", func(ctx context.Context) (err error) {
		switch work.GetWork().(type) {
		case *tilthv1.LeaseWorkResponse_Search:
			_, err = tilthv1.NewSearchServiceClient(s.cfg.Conn).FinishJob(ctx, &tilthv1.FinishJobRequest{
				Lease: token, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: reason,
			})
		case *tilthv1.LeaseWorkResponse_Build:
			_, err = tilthv1.NewBuildServiceClient(s.cfg.Conn).ReportBuild(ctx, &tilthv1.ReportBuildRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: reason,
			})
		case *tilthv1.LeaseWorkResponse_Run:
			_, err = tilthv1.NewRunServiceClient(s.cfg.Conn).ReportRun(ctx, &tilthv1.ReportRunRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: reason,
			})
		case *tilthv1.LeaseWorkResponse_Model:
			_, err = tilthv1.NewSearchServiceClient(s.cfg.Conn).ReportModel(ctx, &tilthv1.ReportModelRequest{Lease: token, InfraMessage: reason})
		case *tilthv1.LeaseWorkResponse_Measure:
			_, err = tilthv1.NewMeasureServiceClient(s.cfg.Conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: reason,
			})
		}
		return err
	})
}
