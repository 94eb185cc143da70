package connlimit

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errStalled is the cancellation cause of a stalled call.
var errStalled = status.Error(codes.DeadlineExceeded, "the call stood still for too long: see whether the peer or the network is overloaded, and try again")

// call is the guard's state of one call. It cancels the call when its peer stalls: before the request is complete, and
// while a stream's message is being received or sent. Time spent in the server does not count. Messages buffered by
// the transport are watched by unread.
//
// It also serves as the call's context, which saves some microseconds per call.
type call struct {
	context.Context
	method  string
	limit   time.Duration
	timer   *time.Timer
	intake  *intake
	answer  *answer
	refused func(method string, err error)
	// forget stops waiting for the end of the call.
	forget func() bool
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// watch starts the stall timer of a call's request. The timer of a call that is cancelled first has no effect.
func watch(ctx context.Context, method string, limit time.Duration, in *intake) *call {
	ctx, cancel := context.WithCancelCause(ctx)
	in.ctx = ctx
	return &call{
		Context: ctx, method: method, limit: limit, timer: time.AfterFunc(limit, func() { cancel(errStalled) }),
		intake: in, forget: context.AfterFunc(ctx, in.end),
	}
}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// answerTo returns the account of the call's answer; nil if answers are not counted.
func (c *call) answerTo() *answer {
	if c == nil {
		return nil
	}
	return c.answer
}

func (c *call) begin() {
	if c != nil {
		c.timer.Reset(c.limit)
	}
}

func (c *call) end() {
	if c != nil {
		c.timer.Stop()
	}
}

// over releases the resources of an answered call.
func (c *call) over() {
	if c != nil {
		c.forget()
		c.intake.end()
	}
}

// receive receives a message that the transport decodes.
func (c *call) receive(decode func(any) error, m any) error {
	in := incoming{message: m}
	err := decode(&in)
	if c != nil && in.fault == nil {
		in.fault = c.messageError()
	}
	if in.fault == nil {
		return err
	}
	if c != nil {
		c.refused(c.method, in.fault)
	}
	return in.fault
}

// messageError returns the error of a compressed or oversized message, or nil. The transport has already sent its
// own error, which is worded differently.
func (c *call) messageError() error {
	method, length := strings.TrimPrefix(c.method, "/"), c.intake.tooLong.Load()
	switch {
	case c.intake.compressed.Load():
		return status.Errorf(codes.Unimplemented, "%s takes no compressed messages: send them as they are", method)
	case length > 0:
		return status.Errorf(codes.ResourceExhausted, "%s takes messages of at most %d bytes, and this one has %d", method, c.intake.max, length)
	}
	return nil
}

// unary is called once the request has arrived.
func unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c := callFrom(ctx)
	if c == nil {
		return handle(ctx, req)
	}
	c.end()
	c.intake.settle()
	defer c.answer.end()
	if err := c.answer.begin(ctx); err != nil {
		return nil, err
	}
	response, err := handle(ctx, req)
	if err != nil {
		return nil, err
	}
	return c.answer.pack(ctx, response)
}

// stream is called once the headers have arrived.
func stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := callFrom(ss.Context())
	c.end()
	defer c.answerTo().end()
	if err := c.answerTo().begin(ss.Context()); err != nil {
		return err
	}
	err := handle(srv, &watched{ss, c, info})
	if context.Cause(ss.Context()) == errStalled { //nolint:errorlint // identity is meant
		return errStalled
	}
	return err
}

// watched is a stream whose messages must not stall.
type watched struct {
	grpc.ServerStream
	call *call
	info *grpc.StreamServerInfo
}

// RecvMsg implements grpc.ServerStream.
func (w *watched) RecvMsg(m any) error {
	// In a bidirectional stream the peer may pause between its messages.
	if !w.info.IsClientStream || !w.info.IsServerStream {
		w.call.begin()
		defer w.call.end()
	}
	err := w.call.receive(w.ServerStream.RecvMsg, m)
	if err == nil && !w.info.IsClientStream && w.call != nil {
		w.call.intake.settle()
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (w *watched) SendMsg(m any) error {
	w.call.begin()
	defer w.call.end()
	m, err := w.call.answerTo().pack(w.Context(), m)
	if err != nil {
		return err
	}
	return w.ServerStream.SendMsg(m)
}
