package retry

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tilth-dev/tilth/internal/wire"
)

// LaterStream is Later for streams with a single request or a single response. It restarts a stream that is
// deferred before any response, and resends its messages. It does not affect bidirectional streams.
func LaterStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	begin := func() (grpc.ClientStream, error) { return open(ctx, desc, conn, method, opts...) }
	stream, err := begin()
	if err != nil || desc.ClientStreams && desc.ServerStreams {
		return stream, err
	}
	return &laterStream{ClientStream: stream, ctx: ctx, begin: begin}, nil
}

// maxResent bounds the bytes kept for resending. The other side does not read a deferred stream, so no more than this
// is in flight: a window, gRPC's buffer ahead of it (writeQuota), the message started last, and the next, waiting one.
const (
	maxResent  = wire.WindowBytes + writeQuota + 2*(wire.PieceBytes+1<<10)
	writeQuota = 64 << 10
)

// laterStream is used by one goroutine at a time, like any unidirectional stream.
type laterStream struct {
	grpc.ClientStream // the current attempt
	ctx               context.Context
	begin             func() (grpc.ClientStream, error)
	// settled is set once the stream cannot be restarted: it was answered, or more was sent than is kept.
	settled bool
	sent    []proto.Message
	bytes   int
	closed  bool // no more messages to send
	// early is the end of a stream during sending, or nil.
	early *ending
}

// ending is a response of any type, or an error.
type ending struct {
	answer emptypb.Empty // its unknown fields are the response
	err    error
}

// SendMsg implements grpc.ClientStream.
func (s *laterStream) SendMsg(m any) error {
	s.keep(m)
	err := s.ClientStream.SendMsg(m)
	for errors.Is(err, io.EOF) && !s.settled {
		end := &ending{}
		if end.err = s.ClientStream.RecvMsg(&end.answer); !s.putOff(end.err) {
			s.early = end
			s.settle()
			return io.EOF
		}
		err = s.resend()
	}
	return err
}

// keep keeps a copy of a message, because the caller may reuse it after sending.
func (s *laterStream) keep(m any) {
	message, is := m.(proto.Message)
	if s.settled || !is {
		return
	}
	if s.bytes += proto.Size(message); s.bytes > maxResent {
		s.settle()
		return
	}
	s.sent = append(s.sent, proto.Clone(message))
}

func (s *laterStream) settle() { s.settled, s.sent = true, nil }

// putOff waits for the requested delay. It returns false if the stream must not be restarted.
func (s *laterStream) putOff(err error) bool {
	wait := after(err)
	if deadline, bounded := s.ctx.Deadline(); s.settled || wait == 0 || bounded && time.Until(deadline) < wait {
		return false
	}
	return Sleep(s.ctx, wait) == nil
}

// resend restarts the stream. It returns io.EOF if the stream has ended meanwhile.
func (s *laterStream) resend() error {
	stream, err := s.begin()
	if err != nil {
		return err
	}
	s.ClientStream = stream
	for _, m := range s.sent {
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	if s.closed {
		return stream.CloseSend()
	}
	return nil
}

// CloseSend implements grpc.ClientStream.
func (s *laterStream) CloseSend() error {
	s.closed = true
	return s.ClientStream.CloseSend()
}

// RecvMsg implements grpc.ClientStream.
func (s *laterStream) RecvMsg(m any) error {
	if end := s.early; end != nil {
		s.early = nil
		return end.tell(m)
	}
	err := s.ClientStream.RecvMsg(m)
	for s.putOff(err) {
		if err = s.resend(); err == nil || errors.Is(err, io.EOF) {
			err = s.ClientStream.RecvMsg(m)
		}
	}
	s.settle()
	return err
}

// tell copies the response into a message of its type.
func (e *ending) tell(m any) error {
	if e.err != nil {
		return e.err
	}
	raw, err := proto.Marshal(&e.answer)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, m.(proto.Message))
}
