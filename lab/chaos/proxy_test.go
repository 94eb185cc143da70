package chaos

import (
	"errors"
	"net"
	"sync"
	"time"
)

// direction is one of the two ways through a proxy.
type direction int

const (
	toTracker direction = iota
	toAgent
)

// proxy forwards the connections of one agent, with network faults.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error) // reaches the tracker
	loops    sync.WaitGroup

	mu    sync.Mutex
	open  map[*link]struct{}
	delay time.Duration
	// silent drops data in a direction without informing the sender.
	silent [2]bool
	// left is the number of bytes that still pass in a direction before the connections are cut; 0 means unlimited.
	left [2]int
	// passed, if set, is called once, after a number of further chunks have passed to the agent.
	chunks int
	passed func()
}

// link is a connection through the proxy.
type link struct{ agent, tracker net.Conn }

func (l *link) close() {
	for _, c := range []net.Conn{l.agent, l.tracker} {
		if tcp, is := c.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // a reset, as from a host that lost the connection
		}
		c.Close()
	}
}

func newProxy(dial func() (net.Conn, error)) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, dial: dial, open: map[*link]struct{}{}}
	p.loops.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
	p.loops.Wait()
}

func (p *proxy) accept() {
	for {
		a, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		t, err := p.dial()
		if err != nil {
			a.Close() // the tracker is down
			continue
		}
		l := &link{agent: a, tracker: t}
		p.mu.Lock()
		p.open[l] = struct{}{}
		p.mu.Unlock()
		p.loops.Go(func() { p.carry(l, a, t, toTracker) })
		p.loops.Go(func() { p.carry(l, t, a, toAgent) })
	}
}

// carry copies in one direction until either end closes.
func (p *proxy) carry(l *link, from, to net.Conn, way direction) {
	defer func() {
		l.close()
		p.mu.Lock()
		delete(p.open, l)
		p.mu.Unlock()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.pass(to, buf[:n], way) {
			return
		}
		if err != nil {
			return
		}
	}
}

// pass forwards a chunk as the current faults allow, and reports whether the connection continues.
func (p *proxy) pass(to net.Conn, chunk []byte, way direction) bool {
	p.mu.Lock()
	delay, silent, cut := p.delay, p.silent[way], false
	if left := p.left[way]; left > 0 && !silent {
		if cut = len(chunk) >= left; cut {
			chunk = chunk[:left]
		}
		p.left[way] = max(0, left-len(chunk))
	}
	var passed func()
	if way == toAgent && p.chunks > 0 {
		if p.chunks--; p.chunks == 0 {
			passed, p.passed = p.passed, nil
		}
	}
	p.mu.Unlock()
	if silent {
		return true
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	_, err := to.Write(chunk)
	if passed != nil {
		passed()
	}
	return err == nil && !cut
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		l.close()
	}
}

// cutAfter cuts a connection after a number of bytes in a direction, possibly within a message.
func (p *proxy) cutAfter(bytes int, way direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[way] = bytes
}

// slow delays each chunk; 0 removes the delay.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// hush drops data in the given directions until heal.
func (p *proxy) hush(ways ...direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ways {
		p.silent[w] = true
	}
}

// heal ends the faults. It closes all connections, because dropped data are missing in them.
func (p *proxy) heal() {
	p.mu.Lock()
	p.silent, p.delay, p.left = [2]bool{}, 0, [2]int{}
	p.mu.Unlock()
	p.cut()
}

// afterAnswers calls f once, after a number of chunks have passed to the agent.
func (p *proxy) afterAnswers(chunks int, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chunks, p.passed = chunks, f
}
