package connlimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
)

// flooder records the peak of the reserved memory while it sends.
type flooder struct {
	*accesstest.Flood
	max int64
}

func startFlood(t *testing.T, addr string, of *service) *flooder {
	t.Helper()
	c, err := accesstest.NewFlood(dialRaw(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	f := &flooder{Flood: c}
	c.Look = func() { f.max = max(f.max, of.guard.HeldBytes()) }
	return f
}

// unfinished starts calls and sends as much of a message of each as the server accepts.
func (f *flooder) unfinished(method string, calls, length int) (dropped bool) {
	for range calls {
		if f.Begin("/test.Service/"+method, "", length) != nil {
			return true
		}
	}
	return f.Send() != nil
}

// emptied waits until no memory is reserved.
func emptied(t *testing.T, g *Guard) {
	t.Helper()
	for deadline := time.Now().Add(patience); g.HeldBytes() != 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are still reserved", g.HeldBytes())
		}
	}
}

func TestUnauthenticatedPartialMessagesAreBounded(t *testing.T) {
	s := &service{}
	f := startFlood(t, start(t, Limits{MemoryWait: time.Minute}, s), s)
	if dropped := f.unfinished("Public", 40, 63<<20); !dropped && f.Ended != 40 || f.max > unauthenticatedConnBytes {
		t.Errorf("40 messages took %d bytes; the connection was dropped: %v, %d calls were refused", f.max, dropped, f.Ended)
	}
	f.Close()
	emptied(t, s.guard)
}

func TestPartialMessagesAreBoundedPerConnection(t *testing.T) {
	const total = 128 << 20
	s := &service{}
	f := startFlood(t, start(t, Limits{RequestBytes: total, MemoryWait: 100 * time.Millisecond}, s), s)
	if dropped := f.unfinished("Echo", 40, 63<<20); !dropped || f.max > total/8 || f.max < total/16 {
		t.Errorf("40 messages took %d bytes; the connection was dropped: %v", f.max, dropped)
	}
	emptied(t, s.guard)
}

func TestOversizeMessagesAreRefusedByTheirHeader(t *testing.T) {
	s := &service{}
	addr := start(t, Limits{}, s)
	conn := dial(t, addr)
	call := func(method string, size int) error {
		return conn.Invoke(t.Context(), "/test.Service/"+method, &wrapperspb.BytesValue{Value: make([]byte, size)}, &wrapperspb.BytesValue{})
	}
	if err := call("Small", 1000); err != nil {
		t.Errorf("a message within the bound: %v", err)
	}
	if err := call("Small", 1024); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message beyond the bound: %v", err)
	}
	f := startFlood(t, addr, s)
	f.unfinished("Small", 4, 32<<20)
	if f.Ended != 4 {
		t.Errorf("of 4 long messages the server refused %d", f.Ended)
	}
	emptied(t, s.guard)
}

// TestStreamedMessagesReuseTheMemoryOfOne checks that only buffered messages count, so the length of a stream is not
// limited.
func TestStreamedMessagesReuseTheMemoryOfOne(t *testing.T) {
	s := &service{}
	conn := dial(t, start(t, Limits{RequestBytes: 64 << 20, MemoryWait: 100 * time.Millisecond}, s))
	sink, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/test.Service/Sink")
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := sink.SendMsg(&wrapperspb.BytesValue{Value: make([]byte, 1<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(sink.CloseSend(), sink.RecvMsg(&wrapperspb.BytesValue{})); err != nil {
		t.Error(err)
	}
	emptied(t, s.guard)
}

func TestAbortedCallsReleaseTheirMemory(t *testing.T) {
	s := &service{}
	f := startFlood(t, start(t, Limits{}, s), s)
	f.unfinished("Echo", 3, 1<<20)
	if err := f.Reset(); err != nil {
		t.Fatal(err)
	}
	emptied(t, s.guard)
}

func TestMemoryIsSharedByCallersAndConnections(t *testing.T) {
	r := newMemoryBudget(800, 0)
	conns := make([]int64, 20)
	on := func(caller string, conn int) account { return account{caller: caller, conn: &conns[conn]} }
	for name, c := range map[string]struct {
		of    account
		bytes int64
		want  bool
	}{
		"a connection's": {on("a", 0), 101, false}, "a call's": {on("a", 0), 100, true},
	} {
		if got := r.reserve(c.of, c.bytes); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !r.reserve(on("a", 1), 100) || r.reserve(on("a", 2), 1) {
		t.Error("a caller does not get exactly a quarter")
	}
	for i, caller := range []string{"b", "b", "c", "c", "d", "d"} {
		if !r.reserve(on(caller, 3+i), 100) {
			t.Errorf("no room for %s", caller)
		}
	}
	if r.reserve(on("e", 10), 1) || r.reserved() != 800 {
		t.Errorf("%d bytes are reserved, want all 800", r.reserved())
	}
	r.release(on("a", 0), 100)
	if !r.reserve(on("e", 10), 100) {
		t.Error("no room after a release")
	}
}

// TestUnauthenticatedPeersHaveLittleMemory checks the limits of unauthenticated callers per connection, per address
// and in total, even with short messages.
func TestUnauthenticatedPeersHaveLittleMemory(t *testing.T) {
	r := newMemoryBudget(1<<40, 0)
	calls := func(hosts, connections int) (taken int64) {
		for host := range hosts {
			for range connections {
				who := account{caller: fmt.Sprint("host ", host), unauthenticated: true, conn: new(int64)}
				for r.reserve(who, callBytes) {
					taken += callBytes
				}
			}
		}
		return taken
	}
	if got := calls(1, 1); got != unauthenticatedConnBytes {
		t.Errorf("a connection takes %d bytes", got)
	}
	if got := calls(1, 1000); got != unauthenticatedHostBytes-unauthenticatedConnBytes {
		t.Errorf("the other connections of its address take %d bytes", got)
	}
	if got := calls(1000, 1000); got != unauthenticatedBytes-unauthenticatedHostBytes {
		t.Errorf("other addresses take %d bytes", got)
	}
	if !r.reserve(account{caller: "a", conn: new(int64)}, 1<<30) {
		t.Error("no room for an authenticated caller")
	}
}

func TestWaitersGetReturnedMemory(t *testing.T) {
	r, conn := newMemoryBudget(80, time.Minute), int64(0)
	who := account{caller: "a", conn: &conn}
	if !r.reserve(who, 10) {
		t.Fatal("no room")
	}
	got := make(chan error, 1)
	go func() { got <- r.await(t.Context(), who, 5) }()
	r.release(who, 10)
	if err := <-got; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.await(ctx, who, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	r.wait = 0
	if err := r.await(t.Context(), who, 10); !errors.Is(err, errOverBudget) {
		t.Errorf("a wait that times out: %v", err)
	}
}

// pieces is a connection that splits received data at random.
type pieces struct {
	net.Conn
	random *rand.Rand
}

// Read implements net.Conn.
func (p pieces) Read(b []byte) (int, error) { return p.Conn.Read(b[:1+p.random.IntN(len(b))]) }

type piecemeal struct {
	net.Listener
	seed atomic.Uint64
}

// Accept implements net.Listener.
func (l *piecemeal) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return pieces{c, rand.New(rand.NewPCG(l.seed.Add(1), 1))}, nil
}

// TestFramesAreParsedAtAnySplit checks that calls receive complete messages however the data is split.
func TestFramesAreParsedAtAnySplit(t *testing.T) {
	s := &service{causes: make(chan error, 1)}
	g := New(Config{Admit: admitAll})
	server := grpc.NewServer(append(g.ServerOptions(), grpc.ReadBufferSize(64))...)
	Registrar(server).RegisterService(s.desc(), nil)
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(&piecemeal{Listener: local}) }()
	defer func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn := dial(t, local.Addr().String())
	for size := range 300 {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("y", size))
		sent, got := &wrapperspb.BytesValue{Value: bytes.Repeat([]byte{7}, 10*size)}, &wrapperspb.BytesValue{}
		if err := conn.Invoke(ctx, "/test.Service/Echo", sent, got); err != nil || !bytes.Equal(sent.GetValue(), got.GetValue()) {
			t.Fatalf("sent %d bytes, received %d: %v", len(sent.GetValue()), len(got.GetValue()), err)
		}
		if err := conn.Invoke(ctx, "/test.Service/Small", &wrapperspb.BytesValue{Value: make([]byte, 2000)}, got); err == nil {
			t.Fatal("a message beyond the bound was accepted")
		}
	}
	emptied(t, g)
}

// FuzzFrames checks that all data is forwarded in order, however it is split.
func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&b, nil)
	if err := errors.Join(framer.WriteSettings(), framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true}),
		framer.WriteDataPadded(1, false, []byte{0, 0, 0, 0, 2, 1, 2}, make([]byte, 3)), framer.WriteRSTStream(1, 0)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), uint8(3))
	f.Fuzz(func(t *testing.T, came []byte, cut uint8) {
		r, held := newMemoryBudget(1<<20, 0), int64(0)
		fr := newFrames(4)
		for rest := came; len(rest) > 0; {
			n, err := fr.scan(rest[:min(len(rest), 1+int(cut))])
			if err != nil {
				return
			}
			if n == 0 {
				t.Fatal("no data was forwarded")
			}
			rest = rest[n:]
			if fr.opened != 0 {
				fr.open(&intake{budget: r, account: account{conn: &held}, ctx: t.Context(), max: 1 << 10, window: 1 << 16})
			}
		}
		if r.reserved() > 4*(1<<16) {
			t.Errorf("%d bytes are reserved", r.reserved())
		}
	})
}
