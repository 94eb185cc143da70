package connlimit

import (
	"net"
	"sync"
)

// Listen limits the connections of a listener: excess connections are closed at once. refused is called with the
// address of each.
func (l Limits) Listen(lis net.Listener, refused func(net.Addr)) net.Listener {
	l = l.WithDefaults()
	return &listener{Listener: lis, total: l.Connections, perHost: l.PerHost, refused: refused, hosts: map[string]int{}}
}

type listener struct {
	net.Listener
	total, perHost int
	refused        func(net.Addr)

	mu    sync.Mutex
	held  int
	hosts map[string]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(c.RemoteAddr())
		if l.take(host) {
			return &conn{Conn: c, ready: newReady(c), release: sync.OnceFunc(func() { l.release(host) })}, nil
		}
		_ = c.Close()
		l.refused(c.RemoteAddr())
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
	if l.held == l.total || host != "" && l.hosts[host] == l.perHost {
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
