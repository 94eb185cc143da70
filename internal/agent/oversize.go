package agent

import (
	"context"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
)

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
