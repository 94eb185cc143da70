package connlimit

import (
	"io"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc/mem"
)

// ready reads from a connection with a buffer that is taken when there is something to read, so that thousands of
// silent peers hold none. One goroutine reads.
type ready struct {
	raw  syscall.RawConn
	read func(fd uintptr) (done bool) // reads into state, once the connection can be read

	size int
	pool mem.BufferPool
	buf  *[]byte
	n    int
	err  error
}

// newReady returns nil when the connection is none of the system's.
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
		if r.err != syscall.EINTR { //nolint:errorlint // a system call's own
			break
		}
	}
	if r.err == nil {
		return true
	}
	r.pool.Put(r.buf)
	r.buf = nil
	return r.err != syscall.EAGAIN //nolint:errorlint // a system call's own
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

// ReadOnReady is asked for by gRPC's transport in place of Read.
func (c *conn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	if c.ready != nil {
		return c.ready.next(size, pool)
	}
	buf := pool.Get(size)
	n, err := c.Read(*buf)
	if n > 0 {
		return buf, n, nil // an error comes again with the next read
	}
	pool.Put(buf)
	return nil, 0, err
}
