package retry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Policy configures the delays between attempts.
type Policy struct {
	// First bounds the first delay; each further bound is twice as large, up to Max. 0 means 100 ms.
	First time.Duration
	// Max is the largest bound; 0 means 5 s.
	Max time.Duration
	// Try bounds one attempt; 0 means 30 s.
	Try time.Duration
}

// Backoff computes the delays between attempts. Its zero value follows the zero Policy.
type Backoff struct {
	Policy Policy
	failed int
}

// Next returns a random delay below a bound that doubles with each call, so that clients that lost the same
// tracker do not return at the same time.
func (b *Backoff) Next() time.Duration {
	first, longest := cmp.Or(b.Policy.First, 100*time.Millisecond), cmp.Or(b.Policy.Max, 5*time.Second)
	wait := longest
	if b.failed < 16 {
		wait = min(first<<b.failed, longest)
		b.failed++
	}
	return rand.N(wait + 1)
}

// Reset restarts with the first delay, after a success.
func (b *Backoff) Reset() { b.failed = 0 }

// Wait waits for the next attempt. If ctx ends first, it returns the cause.
func (b *Backoff) Wait(ctx context.Context) error {
	return Sleep(ctx, b.Next())
}

// Sleep waits for d. If ctx ends first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Lost reports whether a call may be retried: the other side was unreachable, did not answer (so that the
// call may or may not have taken effect), or asked to retry later.
func Lost(err error) bool {
	if _, later := wire.RetryAfter(err); later {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

// Do calls until success, a permanent error (not Lost), or the end of ctx. The policy bounds each attempt's context.
func Do(ctx context.Context, log *slog.Logger, p Policy, what string, call func(context.Context) error) error {
	limit := cmp.Or(p.Try, 30*time.Second)
	backoff := Backoff{Policy: p}
	var complaints RepeatedErrors
	for {
		try, cancel := context.WithTimeout(ctx, limit)
		err := call(try)
		cancel()
		if err == nil || !Lost(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if complaints.Due() {
			log.Warn("call failed, trying again", "call", what, "times", int(complaints), "error", wire.ErrorText(err))
		}
		if err := Sleep(ctx, max(backoff.Next(), after(err))); err != nil {
			return err
		}
	}
}

// after returns the delay that the other side requested, plus jitter.
func after(err error) time.Duration {
	wait, later := wire.RetryAfter(err)
	if !later {
		return 0
	}
	return wait + rand.N(wait+time.Millisecond)
}

// Later is a client interceptor that retries deferred calls at the requested time, for as long as their
// contexts allow.
func Later(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	for {
		err := invoke(ctx, method, req, reply, conn, opts...)
		wait := after(err)
		if deadline, bounded := ctx.Deadline(); wait == 0 || bounded && time.Until(deadline) < wait {
			return err
		}
		if Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// RepeatedErrors counts repeated complaints about a persistent condition, such as an unreachable server.
type RepeatedErrors int

// rarest is the maximum interval, in complaints, between logged ones.
const rarest = 256

// Due reports whether to log another complaint: the first, and then at increasing intervals.
func (c *RepeatedErrors) Due() bool {
	*c++
	n := int(*c)
	return n&(n-1) == 0 && n <= rarest || n%rarest == 0
}

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
