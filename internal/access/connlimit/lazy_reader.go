package connlimit

import (
	"io"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc/mem"
)

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
