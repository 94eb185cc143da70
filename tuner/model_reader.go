package tuner

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Reader extracts the tasks of untrusted models. The report that it returns, with tasks or with the failure
// of the model, has no lease yet. The error is the cause with which ctx ended, or another failure that is not
// the model's fault.
type Reader interface {
	Read(ctx context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error)
}

// read reads the model of a lease and reports its tasks. It returns an error if reporting failed or ctx
// ended. The lease is then still open.
func (h *Handler) read(ctx context.Context, lease *tilthv1.LeaseToken, work *tilthv1.ModelWork) error {
	if h.Reader == nil {
		return errors.New("tuner: the lease is for reading a model, which this tuner does not")
	}
	report, err := h.readAlone(ctx, work)
	if ctx.Err() != nil {
		return fmt.Errorf("tuner: job %s: %w", work.GetJob().GetId(), context.Cause(ctx))
	}
	if err != nil {
		report = &tilthv1.ReportModelRequest{InfraMessage: agent.FailureMessage(err.Error())}
	}
	report.Lease = lease
	if why := report.GetFailure() + report.GetInfraMessage(); why != "" {
		h.Logger.Warn("model not read", "job", work.GetJob().GetId(), "error", why)
	}
	err = h.reportModel(ctx, report)
	if status.Code(err) == codes.InvalidArgument && len(report.GetTasks()) > 0 { // any other tuner would get the same answer
		why := "the tracker refuses the model's tasks: " + status.Convert(err).Message()
		err = h.reportModel(ctx, &tilthv1.ReportModelRequest{Lease: lease, Failure: agent.FailureMessage(why)})
	}
	return err
}

func (h *Handler) reportModel(ctx context.Context, report *tilthv1.ReportModelRequest) error {
	client := tilthv1.NewSearchServiceClient(h.Conn)
	return agent.Report(ctx, h.Logger, "report model of job "+report.GetLease().GetSubject(), func(ctx context.Context) error {
		_, err := client.ReportModel(ctx, report)
		return err
	})
}

// readAlone reads a model while no other is read here and nothing is timed on this machine.
func (h *Handler) readAlone(ctx context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	release, err := h.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("tuner: waiting for the machine: %w", err)
	}
	defer release()
	return h.Reader.Read(ctx, work)
}
