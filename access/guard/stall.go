package guard

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errStalled is the cause with which the context of a stalled call ends.
var errStalled = status.Error(codes.DeadlineExceeded, "the call stood still for too long: see whether the peer or the network is overloaded, and try again")

// stall ends a call when what is awaited of its peer does not come in time. A call is watched from its headers on: until
// its request has come, and while a stream's message is on its way in or out. What the server itself takes is not counted,
// nor the way of a single answer: the transport takes it whole (see conn), and the call has ended.
//
// It is the call's context, which saves every call some microseconds.
type stall struct {
	context.Context
	limit time.Duration
	timer *time.Timer
}

type stallKey struct{}

// Value implements context.Context.
func (s *stall) Value(key any) any {
	if key == (stallKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// watch begins to wait for a call's request. The timer of one that breaks off before it is there fires for nobody.
func (l Limits) watch(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	return &stall{Context: ctx, limit: l.Stall, timer: time.AfterFunc(l.Stall, func() { cancel(errStalled) })}
}

func of(ctx context.Context) *stall {
	s, _ := ctx.Value(stallKey{}).(*stall)
	return s
}

func (s *stall) begin() {
	if s != nil {
		s.timer.Reset(s.limit)
	}
}

func (s *stall) end() {
	if s != nil {
		s.timer.Stop()
	}
}

// unary is called when the request is there.
func unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	of(ctx).end()
	response, err := handle(ctx, req)
	if err == nil {
		answered(ctx, response)
	}
	return response, err
}

// stream is called when the headers are there.
func stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	s := of(ss.Context())
	s.end()
	err := handle(srv, &watched{ss, s, info.IsClientStream && info.IsServerStream})
	if context.Cause(ss.Context()) == errStalled { //nolint:errorlint // it is that very error
		return errStalled
	}
	return err
}

// watched is a stream whose messages must not stand still.
type watched struct {
	grpc.ServerStream
	stall *stall
	// conversation is one in which the peer may think between its messages.
	conversation bool
}

// RecvMsg implements grpc.ServerStream.
func (w *watched) RecvMsg(m any) error {
	if !w.conversation {
		w.stall.begin()
		defer w.stall.end()
	}
	return w.ServerStream.RecvMsg(m)
}

// SendMsg implements grpc.ServerStream.
func (w *watched) SendMsg(m any) error {
	w.stall.begin()
	defer w.stall.end()
	return w.ServerStream.SendMsg(m)
}
