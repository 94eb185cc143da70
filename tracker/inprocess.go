package tracker

import (
	"cmp"
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/wire"
)

// inProcess is a connection to the tracker's own services without a network. Calls from the pages pass the same gate
// and the same bounds as calls over the wire, and are counted and audited alike. Its methods are safe for concurrent
// use once the services are registered.
type inProcess struct {
	gate    *authz.Gate
	count   grpc.UnaryServerInterceptor
	methods map[string]registered
}

// registered is a method and its implementation. Exactly one of unary and stream is set.
type registered struct {
	server any
	unary  func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)
	stream grpc.StreamHandler
}

// newInProcess returns a connection whose calls the gate g decides about.
func (t *Tracker) newInProcess(g *authz.Gate) *inProcess {
	c := &inProcess{gate: g, count: t.metrics.Count, methods: map[string]registered{}}
	t.Register(c)
	return c
}

// RegisterService implements grpc.ServiceRegistrar.
func (c *inProcess) RegisterService(desc *grpc.ServiceDesc, server any) {
	for _, m := range desc.Methods {
		c.methods["/"+desc.ServiceName+"/"+m.MethodName] = registered{server: server, unary: m.Handler}
	}
	for _, s := range desc.Streams {
		c.methods["/"+desc.ServiceName+"/"+s.StreamName] = registered{server: server, stream: s.Handler}
	}
}

// Invoke implements grpc.ClientConnInterface.
func (c *inProcess) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	m := c.methods[method]
	if m.unary == nil {
		return status.Errorf(codes.Unimplemented, "%s is not a unary call of the tracker", method)
	}
	ctx, err := c.gate.Admit(ctx, method, metadata.MD{})
	if err != nil {
		return err
	}
	counted := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return c.count(ctx, req, info, func(ctx context.Context, req any) (any, error) { return c.gate.Unary(ctx, req, info, handle) })
	}
	response, err := m.unary(m.server, ctx, func(to any) error { return c.copyRequest(method, args, to) }, counted)
	if err != nil {
		return err
	}
	return copyResponse(response, reply)
}

// copyRequest copies a request as the wire would: within its bounds and checked for control characters.
func (c *inProcess) copyRequest(method string, from, to any) error {
	request := from.(proto.Message)
	encoded, err := proto.Marshal(request)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "%v", err)
	}
	if limit := wire.RequestBytes(method); len(encoded) > limit {
		return status.Errorf(codes.ResourceExhausted, "the request has %d bytes, more than the limit of %d", len(encoded), limit)
	}
	if err := wire.CheckEncoded(request, encoded); err != nil {
		return err
	}
	return proto.Unmarshal(encoded, to.(proto.Message))
}

// copyResponse copies a response of the server to the client.
func copyResponse(from, to any) error {
	proto.Reset(to.(proto.Message))
	proto.Merge(to.(proto.Message), from.(proto.Message))
	return nil
}

// NewStream implements grpc.ClientConnInterface. The stream ends with ctx, which the caller must cancel.
func (c *inProcess) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	m := c.methods[method]
	if m.stream == nil {
		return nil, status.Errorf(codes.Unimplemented, "%s is not a stream of the tracker", method)
	}
	admitted, err := c.gate.Admit(ctx, method, metadata.MD{})
	if err != nil {
		return nil, err
	}
	s := &inProcessStream{ctx: admitted, conn: c, method: method, requests: make(chan any), messages: make(chan any), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		info := &grpc.StreamServerInfo{FullMethod: method, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
		s.err = c.gate.Stream(m.server, serverSide{s}, info, m.stream)
	}()
	return s, nil
}

// inProcessStream is the client's side of a stream.
type inProcessStream struct {
	ctx                context.Context
	conn               *inProcess
	method             string
	requests, messages chan any
	closing            sync.Once
	ended              chan struct{}
	err                error // the server's result; valid once ended is closed
}

// SendMsg implements grpc.ClientStream. It sends a copy, so the client may reuse the message.
func (s *inProcessStream) SendMsg(m any) error {
	select {
	case s.requests <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.ended:
		return cmp.Or(s.err, io.EOF)
	}
}

// CloseSend implements grpc.ClientStream.
func (s *inProcessStream) CloseSend() error {
	s.closing.Do(func() { close(s.requests) })
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (s *inProcessStream) RecvMsg(m any) error {
	select {
	case message := <-s.messages:
		return copyResponse(message, m)
	case <-s.ended:
		if s.err != nil {
			return s.err
		}
		return io.EOF
	}
}

// Header implements grpc.ClientStream.
func (s *inProcessStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer implements grpc.ClientStream.
func (s *inProcessStream) Trailer() metadata.MD { return metadata.MD{} }

// Context implements grpc.ClientStream.
func (s *inProcessStream) Context() context.Context { return s.ctx }

// serverSide is the server's side of the stream.
type serverSide struct{ *inProcessStream }

// RecvMsg implements grpc.ServerStream.
func (s serverSide) RecvMsg(m any) error {
	select {
	case request, more := <-s.requests:
		if !more {
			return io.EOF
		}
		return s.conn.copyRequest(s.method, request, m)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// SendMsg implements grpc.ServerStream. It sends a copy, so the server may reuse the message.
func (s serverSide) SendMsg(m any) error {
	select {
	case s.messages <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// SetHeader implements grpc.ServerStream.
func (serverSide) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerStream.
func (serverSide) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerStream.
func (serverSide) SetTrailer(metadata.MD) {}
