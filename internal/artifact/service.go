package artifact

import (
	"context"
	"errors"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Service serves a Store over gRPC.
type Service struct {
	tilthv1.UnimplementedArtifactServiceServer
	store *Store
	who   func(context.Context) string
}

// NewService returns the service of a store. who returns the caller's identity; callers with an empty one share one
// account.
func NewService(store *Store, who func(context.Context) string) *Service {
	return &Service{store: store, who: who}
}

// StatArtifact implements tilthv1.ArtifactServiceServer.
func (s *Service) StatArtifact(ctx context.Context, req *tilthv1.StatArtifactRequest) (*tilthv1.StatArtifactResponse, error) {
	if !records.ValidDigest(req.GetDigest()) {
		return nil, status.Errorf(codes.InvalidArgument, "digest: %q is not a sha256", req.GetDigest())
	}
	complete, err := s.store.Confirm(ctx, req.GetDigest())
	if err != nil {
		return nil, s.wireError(err)
	}
	if complete {
		_, size := s.store.Stat(req.GetDigest())
		return &tilthv1.StatArtifactResponse{Complete: true, ReceivedBytes: uint64(size)}, nil
	}
	received, err := s.store.Received(ctx, s.who(ctx), req.GetDigest())
	if err != nil {
		return nil, s.wireError(err)
	}
	return &tilthv1.StatArtifactResponse{ReceivedBytes: uint64(received)}, nil
}

// UploadArtifact implements tilthv1.ArtifactServiceServer.
func (s *Service) UploadArtifact(stream grpc.ClientStreamingServer[tilthv1.UploadArtifactRequest, tilthv1.UploadArtifactResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if !records.ValidDigest(first.GetDigest()) {
		return status.Errorf(codes.InvalidArgument, "digest: %q is not a sha256", first.GetDigest())
	}
	src := &messageReader[*tilthv1.UploadArtifactRequest]{receive: stream.Recv, rest: first.GetData()}
	ctx := stream.Context()
	up := Upload{Identity: s.who(ctx), Digest: first.GetDigest(), SizeBytes: int64(first.GetSizeBytes()), Offset: int64(first.GetOffset())}
	if err := s.store.Put(ctx, up, src); err != nil {
		return s.wireError(err)
	}
	return stream.SendAndClose(&tilthv1.UploadArtifactResponse{})
}

// DownloadArtifact implements tilthv1.ArtifactServiceServer.
func (s *Service) DownloadArtifact(req *tilthv1.DownloadArtifactRequest, stream grpc.ServerStreamingServer[tilthv1.DownloadArtifactResponse]) error {
	err := s.store.Send(stream.Context(), req.GetDigest(), int64(req.GetOffset()), func(b []byte) error {
		return stream.Send(&tilthv1.DownloadArtifactResponse{Data: b})
	})
	if err != nil {
		return s.wireError(err)
	}
	return nil
}

func (s *Service) wireError(err error) error {
	// An error of the stream has its own code.
	code := status.Code(err)
	switch {
	case errors.Is(err, ErrBusy):
		return wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "%v: try again when some have ended", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		s.store.Logger.Warn("an artifact cannot be opened: raise the limit on open files", "error", err)
		return wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "the tracker has no file descriptor left: its operator can raise the limit on open files; try again later")
	case errors.Is(err, ErrAway): // details are logged, not sent
		return wire.Refuse(codes.Unavailable, wire.ReasonStoreAway, "%v: try again later", ErrAway)
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrDigest), errors.Is(err, syscall.EIO): // the client should start over
		code = codes.DataLoss
	case errors.Is(err, ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, ErrOffset):
		code = codes.FailedPrecondition
	case errors.Is(err, ErrSize):
		code = codes.InvalidArgument
	case errors.Is(err, ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case code == codes.Unknown:
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}
