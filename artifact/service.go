package artifact

import (
	"context"
	"errors"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const chunkBytes = 256 << 10

// Service serves a store over gRPC.
type Service struct {
	tilthv1.UnimplementedArtifactServiceServer
	store *Store
}

// NewService returns the service of a store.
func NewService(store *Store) *Service { return &Service{store: store} }

// StatArtifact implements tilthv1.ArtifactServiceServer.
func (s *Service) StatArtifact(_ context.Context, req *tilthv1.StatArtifactRequest) (*tilthv1.StatArtifactResponse, error) {
	if !records.ValidDigest(req.GetDigest()) {
		return nil, status.Errorf(codes.InvalidArgument, "digest: %q is not a sha256", req.GetDigest())
	}
	complete, received := s.store.Stat(req.GetDigest())
	return &tilthv1.StatArtifactResponse{Complete: complete, ReceivedBytes: uint64(received)}, nil
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
	src := &uploadReader{stream: stream, rest: first.GetData()}
	err = s.store.Put(stream.Context(), first.GetDigest(), int64(first.GetSizeBytes()), int64(first.GetOffset()), src)
	if err != nil {
		return wireError(err)
	}
	return stream.SendAndClose(&tilthv1.UploadArtifactResponse{})
}

// DownloadArtifact implements tilthv1.ArtifactServiceServer.
func (s *Service) DownloadArtifact(req *tilthv1.DownloadArtifactRequest, stream grpc.ServerStreamingServer[tilthv1.DownloadArtifactResponse]) error {
	path, release, err := s.store.Use(req.GetDigest())
	if err != nil {
		return wireError(err)
	}
	defer release()
	f, err := os.Open(path)
	if err != nil {
		return wireError(err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(req.GetOffset()), io.SeekStart); err != nil {
		return status.Errorf(codes.InvalidArgument, "offset: %v", err)
	}
	buf := make([]byte, chunkBytes)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := stream.Send(&tilthv1.DownloadArtifactResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return wireError(err)
		}
	}
}

// uploadReader reads the data of an upload's messages.
type uploadReader struct {
	stream grpc.ClientStreamingServer[tilthv1.UploadArtifactRequest, tilthv1.UploadArtifactResponse]
	rest   []byte
}

func (r *uploadReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		r.rest = m.GetData()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func wireError(err error) error {
	// What broke the stream has a code of its own.
	code := status.Code(err)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, os.ErrNotExist):
		code = codes.NotFound
	case errors.Is(err, ErrOffset):
		code = codes.FailedPrecondition
	case errors.Is(err, ErrDigest):
		code = codes.DataLoss
	case errors.Is(err, ErrSize):
		code = codes.InvalidArgument
	case errors.Is(err, ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case code == codes.Unknown:
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}
