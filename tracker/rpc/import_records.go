package rpc

import (
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ImportRecords implements tilthv1.RecordServiceServer.
func (s *Services) ImportRecords(stream grpc.ClientStreamingServer[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]) error {
	imported, skipped, err := s.coordinator.Store().Import(stream.Context(), func() (*tilthv1.Record, error) {
		m, err := stream.Recv()
		return m.GetRecord(), err
	})
	if errors.Is(err, records.ErrInvalid) {
		return invalid("record", "%s", strings.TrimPrefix(err.Error(), records.ErrInvalid.Error()+": "))
	}
	if _, isStatus := status.FromError(err); err != nil && !isStatus {
		return wire.Refuse(codes.Unavailable, wire.ReasonUnwritten, "import records: %v", err)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&tilthv1.ImportRecordsResponse{Imported: imported, Skipped: skipped})
}
