package connlimit

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// reservedAge bounds the life of a connection of the operators' reserve, and refusedAge that of one whose call was
// refused; the answer must arrive in that time.
const (
	reservedAge = time.Minute
	refusedAge  = 250 * time.Millisecond
)

// ErrTooMany is the reason of a connection refused at a limit on connections.
var ErrTooMany = errors.New("there are too many connections")

// Listen limits the connections of a listener: excess connections are closed at once. refused is called with the
// address of each, and with a nil address if the process has no descriptor left to accept one.
//
// With guarded, connections beyond the total use the operators' reserve, where the listener's server admits operators
// only.
func (l Limits) Listen(lis net.Listener, guarded bool, refused func(from net.Addr, why error)) net.Listener {
	l = l.WithDefaults()
	out := &listener{Listener: lis, total: l.Connections, perHost: l.PerHost, refused: refused, hosts: map[string]int{}}
	if guarded {
		out.reserve = reserveOf(l.Connections)
		out.total -= out.reserve
	}
	return out
}

// reserveOf returns how many of a number of connections are reserved for operators.
func reserveOf(connections int) int { return min(connections/16, 32) }

type listener struct {
	net.Listener
	total, perHost, reserve int
	refused                 func(from net.Addr, why error)

	mu             sync.Mutex
	held, reserved int
	hosts          map[string]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.refused(nil, err)
		}
		if err != nil {
			return nil, err // the server tries again after a pause
		}
		host := hostOf(c.RemoteAddr())
		switch {
		case l.take(host):
			return &conn{Conn: c, ready: newReady(c), release: sync.OnceFunc(func() { l.release(host) })}, nil
		case l.takeReserved(host):
			reserved := &conn{Conn: c, ready: newReady(c), release: sync.OnceFunc(l.releaseReserved)}
			reserved.refuse = sync.OnceFunc(func() { l.refused(c.RemoteAddr(), ErrTooMany) })
			reserved.expiry = time.AfterFunc(reservedAge, func() { _ = reserved.Close() })
			return reserved, nil
		}
		_ = c.Close()
		l.refused(c.RemoteAddr(), ErrTooMany)
	}
}

// hostOf returns an address without its port; empty for this machine.
func hostOf(of net.Addr) string {
	if a, is := of.(addr); is {
		of = a.Addr
	}
	if a, is := of.(*net.TCPAddr); is && !a.IP.IsLoopback() {
		return a.IP.String()
	}
	return ""
}

func (l *listener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == l.total || l.hasMany(host) {
		return false
	}
	l.held++
	l.hosts[host]++
	return true
}

func (l *listener) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
}

// hasMany reports whether an address has all the connections that it may have. The caller holds the mutex.
func (l *listener) hasMany(host string) bool { return host != "" && l.hosts[host] == l.perHost }

func (l *listener) takeReserved(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved == l.reserve || l.hasMany(host) {
		return false
	}
	l.reserved++
	return true
}

func (l *listener) releaseReserved() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
}

// conn releases its connection slot on Close.
type conn struct {
	net.Conn
	ready   *ready // nil if the system does not support it
	release func()

	expiry *time.Timer // closes a connection of the operators' reserve; nil for others
	refuse func()      // reports a connection of the reserve that is no operator's
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	return c.Conn.Close()
}

// addr is an address that leads back to its connection.
type addr struct {
	net.Addr
	filter *filter
}
