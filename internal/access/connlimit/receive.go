package connlimit

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// prefixBytes is the length of the prefix of a gRPC message: a compression flag and the length.
const prefixBytes = 5

var errInvalidMessage = errors.New("a message is compressed, or longer than its method allows")

// intake accounts for the request of one call. It reserves memory as bytes arrive, but at most what the transport
// buffers: a flow control window, and the message that the server is reading.
type intake struct {
	budget  *memoryBudget
	account account
	ctx     context.Context
	// max is the maximum length of a message; window is how much the transport accepts before the server reads.
	max, window int

	// prefix to left are used by the connection's reader only.
	prefix [prefixBytes]byte
	begun  int // received bytes of the prefix
	left   int // remaining bytes of the message

	tooLong    atomic.Uint32 // length of an oversized message; 0 = none
	compressed atomic.Bool   // a message was compressed

	mu      sync.Mutex
	came    int // bytes received
	longest int // longest message, in bytes
	held    int64
	over    bool
}

// open reserves the memory that a call needs until its request is complete.
func (i *intake) open() bool {
	if !i.budget.reserve(i.account, callBytes) {
		return false
	}
	i.held = callBytes
	return true
}

// receive counts received bytes and waits until the budget allows them. Data for a finished call is dropped by the
// transport. An error means that the budget is exceeded. It ends the connection, since nothing else can be read from
// it meanwhile.
func (i *intake) receive(bytes int) error {
	more := i.need(bytes)
	if more <= 0 {
		return nil
	}
	if err := i.await(more); err != nil {
		if i.ctx.Err() != nil {
			return nil
		}
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		i.budget.release(i.account, more)
	} else {
		i.held += more
	}
	return nil
}

func (i *intake) await(bytes int64) error {
	if !i.account.unauthenticated {
		return i.budget.await(i.ctx, i.account, bytes)
	}
	if !i.budget.reserve(i.account, bytes) {
		return errOverBudget
	}
	return nil
}

// need counts received bytes, and returns how many more the call has to take.
func (i *intake) need(bytes int) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.came += bytes
	kept := min(i.came, i.window+i.longest+prefixBytes)
	if i.over || kept <= callBytes {
		return 0 // covered by what a call takes at the start
	}
	return int64(kept) - i.held
}

// follow parses a part of the request's messages. It overwrites the length of an oversized or compressed message with
// an invalid one, so that the transport refuses it before reading it.
func (i *intake) follow(b []byte) error {
	for len(b) > 0 {
		if i.left > 0 {
			skip := min(i.left, len(b))
			i.left -= skip
			b = b[skip:]
			continue
		}
		took := copy(i.prefix[i.begun:], b)
		i.begun += took
		if i.begun < prefixBytes {
			return nil
		}
		length := binary.BigEndian.Uint32(i.prefix[1:])
		if !i.fits(length) {
			if took < prefixBytes {
				return errInvalidMessage // a part of the prefix was already passed on
			}
			binary.BigEndian.PutUint32(b[1:], math.MaxUint32)
			length = math.MaxUint32
		}
		i.begun, i.left = 0, int(length)
		i.note(min(int(length), i.max))
		b = b[took:]
	}
	return nil
}

// fits reports whether the message is acceptable by its prefix. Compressed messages are refused: their decompressed
// size is unknown and could not be bounded.
func (i *intake) fits(length uint32) bool {
	switch {
	case i.prefix[0] != 0:
		i.compressed.Store(true)
	case uint64(length) > uint64(i.max):
		i.tooLong.Store(length)
	default:
		return true
	}
	return false
}

func (i *intake) note(length int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.longest = max(i.longest, length)
}

// settle records that the request is complete. A small request then releases its memory, since calls may wait a long
// time for work.
func (i *intake) settle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.came <= callBytes && !i.over {
		i.budget.release(i.account, i.held)
		i.held = 0
	}
}

// end releases all that the call holds.
func (i *intake) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over {
		i.over = true
		i.budget.release(i.account, i.held)
	}
}

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
