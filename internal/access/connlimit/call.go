package connlimit

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errStalled is the cause with which the context of a stalled call ends.
var errStalled = status.Error(codes.DeadlineExceeded, "the call stood still for too long: see whether the peer or the network is overloaded, and try again")

// call is what the guard knows of one call. It ends the call when what is awaited of its peer does not come in time. A
// call is watched from its headers on: until its request has come, and while a stream's message is on its way in or
// out. What the server itself takes is not counted. The way of what the transport keeps is looked after by unread.
//
// It is the call's context, which saves every call some microseconds.
type call struct {
	context.Context
	method  string
	limit   time.Duration
	timer   *time.Timer
	intake  *intake
	answer  *answer
	refused func(method string, err error)
	// forget ends the wait for the call's end.
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

// watch begins to wait for a call's request. The timer of one that breaks off before it is there fires for nobody.
func watch(ctx context.Context, method string, limit time.Duration, in *intake) *call {
	ctx, cancel := context.WithCancelCause(ctx)
	in.ctx = ctx
	return &call{
		Context: ctx, method: method, limit: limit, timer: time.AfterFunc(limit, func() { cancel(errStalled) }),
		intake: in, forget: context.AfterFunc(ctx, in.end),
	}
}

func of(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// answerTo is what answering it takes; nil where nobody counts.
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

// over gives back what the call took, when it has been answered.
func (c *call) over() {
	if c != nil {
		c.forget()
		c.intake.end()
	}
}

// receive gets a message that the transport decodes.
func (c *call) receive(decode func(any) error, m any) error {
	in := incoming{message: m}
	err := decode(&in)
	if c != nil && in.fault == nil {
		in.fault = c.unfit()
	}
	if in.fault == nil {
		return err
	}
	if c != nil {
		c.refused(c.method, in.fault)
	}
	return in.fault
}

// unfit is the refusal of a message that is compressed or too long; nil when none was. The transport's own, which is
// worded otherwise, has gone out before.
func (c *call) unfit() error {
	method, length := strings.TrimPrefix(c.method, "/"), c.intake.tooLong.Load()
	switch {
	case c.intake.compressed.Load():
		return status.Errorf(codes.Unimplemented, "%s takes no compressed messages: send them as they are", method)
	case length > 0:
		return status.Errorf(codes.ResourceExhausted, "%s takes messages of at most %d bytes, and this one has %d", method, c.intake.most, length)
	}
	return nil
}

// unary is called when the request is there.
func unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c := of(ctx)
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

// stream is called when the headers are there.
func stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := of(ss.Context())
	c.end()
	defer c.answerTo().end()
	if err := c.answerTo().begin(ss.Context()); err != nil {
		return err
	}
	err := handle(srv, &watched{ss, c, info})
	if context.Cause(ss.Context()) == errStalled { //nolint:errorlint // it is that very error
		return errStalled
	}
	return err
}

// watched is a stream whose messages must not stand still.
type watched struct {
	grpc.ServerStream
	call *call
	info *grpc.StreamServerInfo
}

// RecvMsg implements grpc.ServerStream.
func (w *watched) RecvMsg(m any) error {
	// In a conversation the peer may think between its messages.
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
