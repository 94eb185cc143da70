package agent

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// reportFailure tells the tracker that an attempt failed through the fault of this side, so that it is retried at once.
// A tuner that fails ends its job: the same search would fail again.
func (s *session) reportFailure(ctx context.Context, work *tilthv1.LeaseWorkResponse, cause error) error {
	token := work.GetLease()
	return Report(ctx, s.log, "report failure", func(ctx context.Context) (err error) {
		switch work.GetWork().(type) {
		case *tilthv1.LeaseWorkResponse_Search:
			_, err = tilthv1.NewSearchServiceClient(s.cfg.Conn).FinishJob(ctx, &tilthv1.FinishJobRequest{
				Lease: token, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: cause.Error(),
			})
		case *tilthv1.LeaseWorkResponse_Build:
			_, err = tilthv1.NewBuildServiceClient(s.cfg.Conn).ReportBuild(ctx, &tilthv1.ReportBuildRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: cause.Error(),
			})
		case *tilthv1.LeaseWorkResponse_Measure:
			_, err = tilthv1.NewMeasureServiceClient(s.cfg.Conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: cause.Error(),
			})
		}
		return err
	})
}
