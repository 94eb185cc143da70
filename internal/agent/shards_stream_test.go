package agent

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestStreamThatCannotBeBegunSaysWhy checks that a stream that cannot be opened at any shard returns the reason,
// which determines whether the caller retries.
func TestStreamThatCannotBeBegunSaysWhy(t *testing.T) {
	for _, away := range []int{0, 1} {
		s := &shards{}
		s.count.Store(2)
		stream, err := s.stream(t.Context(), nil, nil, tilthv1.ArtifactService_UploadArtifact_FullMethodName,
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				if shardIn(ctx) == away {
					return nil, status.Error(codes.Unavailable, "away")
				}
				return begun{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		sent, closed := stream.SendMsg(&tilthv1.UploadArtifactRequest{}), stream.CloseSend()
		received := stream.RecvMsg(&tilthv1.UploadArtifactResponse{})
		if status.Code(sent) != codes.Unavailable || closed != nil || status.Code(received) != codes.Unavailable {
			t.Errorf("shard %d is away: %v, %v, %v", away, sent, closed, received)
		}
	}
}

// begun is a stream that a tracker refuses by ending it.
type begun struct{ grpc.ClientStream }

func (begun) CloseSend() error  { return nil }
func (begun) RecvMsg(any) error { return status.Error(codes.InvalidArgument, "nothing came") }
