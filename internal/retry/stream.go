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

// LaterStream is Later for streams with one request or one answer: one that is put off before it has answered anything
// is begun anew with what was sent. Streams that go both ways are left alone.
func LaterStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	begin := func() (grpc.ClientStream, error) { return open(ctx, desc, conn, method, opts...) }
	stream, err := begin()
	if err != nil || desc.ClientStreams && desc.ServerStreams {
		return stream, err
	}
	return &laterStream{ClientStream: stream, ctx: ctx, begin: begin}, nil
}

// mostResent bounds what is kept of a stream to send it again, in bytes. No more than this is on its way before the
// other side reads any of it, and it reads nothing of what it puts off: a window, what gRPC takes from its callers
// ahead of that (writeQuota), the message that was begun last, and the next one, which waits.
const (
	mostResent = wire.WindowBytes + writeQuota + 2*(wire.PieceBytes+1<<10)
	writeQuota = 64 << 10
)

// laterStream is used by one goroutine at a time, as streams are that go one way.
type laterStream struct {
	grpc.ClientStream // that was begun last
	ctx               context.Context
	begin             func() (grpc.ClientStream, error)
	// settled says that the stream is not begun anew: it was answered, or more was sent than is kept.
	settled bool
	sent    []proto.Message
	bytes   int
	closed  bool // nothing more is sent
	// early is how the stream ended while it was sent; nil = it did not.
	early *ending
}

// ending is an answer, of any kind, or an error.
type ending struct {
	answer emptypb.Empty // whose unknown fields are the answer
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

// keep keeps a copy of a message, which is the caller's again once it is sent.
func (s *laterStream) keep(m any) {
	message, is := m.(proto.Message)
	if s.settled || !is {
		return
	}
	if s.bytes += proto.Size(message); s.bytes > mostResent {
		s.settle()
		return
	}
	s.sent = append(s.sent, proto.Clone(message))
}

func (s *laterStream) settle() { s.settled, s.sent = true, nil }

// putOff waits for as long as an answer says to, if it does. False when the stream is not to be begun anew.
func (s *laterStream) putOff(err error) bool {
	wait := after(err)
	if deadline, bounded := s.ctx.Deadline(); s.settled || wait == 0 || bounded && time.Until(deadline) < wait {
		return false
	}
	return Sleep(s.ctx, wait) == nil
}

// resend begins the stream anew. io.EOF = it has ended meanwhile.
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

// tell puts the answer into a message of its kind.
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
