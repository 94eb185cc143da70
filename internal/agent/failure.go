// This file classifies failures of an agent's work, in the error classes of the wire.

package agent

import (
	"context"
	"errors"
	"path"
	"strings"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
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

// FarmError is a failure to transfer artifacts. Neither the agent nor its work is the cause.
type FarmError struct{ Cause error }

func (e *FarmError) Error() string { return e.Cause.Error() }

func (e *FarmError) Unwrap() error { return e.Cause }

// FailureClass returns FARM_INFRA for errors caused by a Farm failure, and own for all others.
func FailureClass(err error, own tilthv1.ErrorClass) tilthv1.ErrorClass {
	var farm *FarmError
	if errors.As(err, &farm) {
		return tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
	}
	return own
}

// FailureMessage sanitizes a text that may come from a compiler or a candidate: it returns the start of the first
// line, with unprintable characters, such as terminal escape sequences, replaced by blanks. The wire only
// accepts UTF-8.
func FailureMessage(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line[:min(len(line), wire.TextBytes)])
	return strings.TrimSpace(line)
}

// tooLong returns an error for a message that exceeds the tracker's limit, before it is sent.
func tooLong(method string, message any) error {
	m, is := message.(proto.Message)
	limit := wire.RequestBytes(method)
	if !is || limit == 0 {
		return nil
	}
	if n := proto.Size(m); n > limit {
		return status.Errorf(codes.ResourceExhausted, "%s takes messages of at most %d bytes, and this one has %d", path.Base(method), limit, n)
	}
	return nil
}

func checkLength(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := tooLong(method, req); err != nil {
		return err
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

func checkLengths(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	return lengthChecked{stream, method}, nil
}

// lengthChecked is a stream that checks the length of messages before sending.
type lengthChecked struct {
	grpc.ClientStream
	method string
}

// SendMsg implements grpc.ClientStream.
func (s lengthChecked) SendMsg(m any) error {
	if err := tooLong(s.method, m); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}
