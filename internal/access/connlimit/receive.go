package connlimit

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Check validates an encoded message before it is decoded; m is an empty message of its type.
type Check func(m proto.Message, encoded []byte) error

// incoming is a message to be received.
type incoming struct {
	message any
	// fault is why the message was not decoded; gRPC would replace the error.
	fault error
}

// codec checks messages before it decodes them, and discards unknown fields, whose size could not be bounded. It also
// encodes parcels.
type codec struct {
	encoding.CodecV2
	check Check
}

func newCodec(check Check) codec { return codec{encoding.GetCodecV2(protocodec.Name), check} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if p, is := v.(*trackedMessage); is {
		return p.encode()
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, is := v.(*incoming)
	if !is {
		return c.CodecV2.Unmarshal(data, v)
	}
	m, is := in.message.(proto.Message)
	if !is {
		return c.CodecV2.Unmarshal(data, in.message)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if c.check != nil {
		if in.fault = c.check(m, buf.ReadOnlyData()); in.fault != nil {
			return nil
		}
	}
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(buf.ReadOnlyData(), m)
}

// Registrar returns a registrar that applies the guard's limits to unary calls; an interceptor does that for streams.
func Registrar(s grpc.ServiceRegistrar) grpc.ServiceRegistrar { return registrar{s} }

type registrar struct{ grpc.ServiceRegistrar }

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	guarded := *desc
	guarded.Methods = nil
	for _, m := range desc.Methods {
		handle := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			s := callFrom(ctx)
			defer s.over()
			return handle(srv, ctx, func(m any) error { return s.receive(decode, m) }, intercept)
		}
		guarded.Methods = append(guarded.Methods, m)
	}
	r.ServiceRegistrar.RegisterService(&guarded, impl)
}

// ready reads from a connection and allocates a buffer only when data is available, so that thousands of idle peers
// hold none. It must be used by one goroutine.
type ready struct {
	raw  syscall.RawConn
	read func(fd uintptr) (done bool) // reads into state once the connection is readable

	size int
	pool mem.BufferPool
	buf  *[]byte
	n    int
	err  error
}

// newReady returns nil for a connection without a file descriptor.
func newReady(c net.Conn) *ready {
	s, is := c.(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	r := &ready{raw: raw}
	r.read = r.tryRead
	return r
}

func (r *ready) tryRead(fd uintptr) bool {
	r.buf = r.pool.Get(r.size)
	for {
		r.n, r.err = syscall.Read(int(fd), *r.buf)
		if r.err != syscall.EINTR { //nolint:errorlint // raw errno
			break
		}
	}
	if r.err == nil {
		return true
	}
	r.pool.Put(r.buf)
	r.buf = nil
	return r.err != syscall.EAGAIN //nolint:errorlint // raw errno
}

func (r *ready) next(size int, pool mem.BufferPool) (*[]byte, int, error) {
	r.size, r.pool, r.buf = size, pool, nil
	err := r.raw.Read(r.read)
	buf, n := r.buf, r.n
	r.pool, r.buf = nil, nil
	switch {
	case err == nil && r.err != nil:
		return nil, 0, os.NewSyscallError("read", r.err)
	case err == nil && n > 0:
		return buf, n, nil
	case err == nil:
		err = io.EOF
	}
	if buf != nil {
		pool.Put(buf)
	}
	return nil, 0, err
}

// ReadOnReady is called by the gRPC transport in place of Read.
func (c *conn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	if c.ready != nil {
		return c.ready.next(size, pool)
	}
	buf := pool.Get(size)
	n, err := c.Read(*buf)
	if n > 0 {
		return buf, n, nil // the next read returns the error again
	}
	pool.Put(buf)
	return nil, 0, err
}
