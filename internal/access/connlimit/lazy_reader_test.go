package connlimit

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
)

// counting counts the buffers in use.
type counting struct {
	mem.BufferPool
	out atomic.Int64
}

func (p *counting) Get(n int) *[]byte {
	p.out.Add(1)
	return p.BufferPool.Get(n)
}

func (p *counting) Put(b *[]byte) {
	p.out.Add(-1)
	p.BufferPool.Put(b)
}

// TestConnectionIsReadWithBuffersThatAreHeldForData checks that reads return all data and the end, and that buffers
// are only held while data is read.
func TestConnectionIsReadWithBuffersThatAreHeldForData(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for name, wrap := range map[string]func(net.Conn) *conn{
		"of the system": func(c net.Conn) *conn { return &conn{Conn: c, ready: newReady(c), release: func() {}} },
		"another":       func(c net.Conn) *conn { return &conn{Conn: struct{ net.Conn }{c}, release: func() {}} },
	} {
		t.Run(name, func(t *testing.T) {
			peer, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c, pool := wrap(accepted), &counting{BufferPool: mem.DefaultBufferPool()}
			defer c.Close()
			go func() {
				_, _ = io.WriteString(peer, "ten bytes.")
				_ = peer.Close()
			}()
			got := ""
			for {
				buf, n, err := c.ReadOnReady(4, pool)
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					break
				}
				got += string((*buf)[:n])
				pool.Put(buf)
			}
			if got != "ten bytes." || pool.out.Load() != 0 {
				t.Errorf("read %q, and %d buffers are out", got, pool.out.Load())
			}
		})
	}
}
