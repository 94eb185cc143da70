package connlimit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the timeout of every wait. It is generous for an overloaded machine.
const patience = 10 * time.Minute

// service implements Echo; Flood, which sends messages forever; and Sink, which reads all messages. Causes receives
// the cancellation cause of each call.
type service struct {
	flooding []byte
	block    chan struct{} // Echo waits until it is closed; nil = no wait
	causes   chan error
	guard    *Guard
}

func (s *service) note(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		select {
		case s.causes <- context.Cause(ctx):
		default:
		}
	})
}

//nolint:revive // the order is that of gRPC's method handlers
func (s *service) echo(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	s.note(ctx)
	in := &wrapperspb.BytesValue{}
	if err := decode(in); err != nil {
		return nil, err
	}
	return intercept(ctx, in, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) {
		if s.block != nil {
			<-s.block
		}
		return &wrapperspb.BytesValue{Value: append(in.GetValue(), s.flooding...)}, nil
	})
}

func (s *service) desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "test.Service", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: s.echo}, {MethodName: "Small", Handler: s.echo}, {MethodName: "Public", Handler: s.echo}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Flood", ServerStreams: true, Handler: func(_ any, ss grpc.ServerStream) error {
				s.note(ss.Context())
				for {
					if err := ss.SendMsg(&wrapperspb.BytesValue{Value: s.flooding}); err != nil {
						return err
					}
				}
			}},
			{StreamName: "Sink", ClientStreams: true, Handler: func(_ any, ss grpc.ServerStream) error {
				s.note(ss.Context())
				for {
					if err := ss.RecvMsg(&wrapperspb.BytesValue{}); errors.Is(err, io.EOF) {
						return ss.SendMsg(&wrapperspb.BytesValue{})
					} else if err != nil {
						return err
					}
				}
			}},
		},
	}
}

// elsewhere is a listener whose peers all appear to be on one remote host.
type elsewhere struct{ net.Listener }

// Accept implements net.Listener.
func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return remote{c}, nil
}

type remote struct{ net.Conn }

// RemoteAddr implements net.Conn.
func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// admitAll admits everyone under the name in the header.
func admitAll(ctx context.Context, method string, header metadata.MD) (context.Context, Admission, error) {
	a := Admission{Unauthenticated: strings.HasSuffix(method, "/Public")}
	if names := header.Get("name"); len(names) > 0 {
		a.Caller = names[0]
	}
	if takes := header.Get("answer"); len(takes) > 0 {
		a.AnswerBytes, _ = strconv.Atoi(takes[0])
	}
	if strings.HasSuffix(method, "/Small") || a.Unauthenticated {
		a.MessageBytes = 1 << 10
	}
	return ctx, a, nil
}

// start serves with limits and returns the address.
func start(t *testing.T, l Limits, s *service, options ...grpc.ServerOption) string {
	t.Helper()
	s.causes = make(chan error, 16)
	s.guard = New(Config{Limits: l, Admit: admitAll})
	server := grpc.NewServer(append(s.guard.ServerOptions(), options...)...)
	Registrar(server).RegisterService(s.desc(), nil)
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis := elsewhere{local}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l.Listen(lis, true, func(net.Addr, error) {})) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// dropped waits until the server closes an idle connection.
func dropped(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is kept")
	}
}

// speaker is a peer that sends exactly what the test specifies.
type speaker struct {
	net.Conn
	*http2.Framer
}

// speak starts HTTP/2 with the given initial window of streams.
func speak(t *testing.T, addr string, window uint32) *speaker {
	t.Helper()
	c := dialRaw(t, addr)
	s := &speaker{c, http2.NewFramer(c, c)}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	return s
}

// call starts a call and waits until the server has received it.
func (s *speaker) call(t *testing.T, stream uint32, method string) {
	t.Helper()
	if err := s.begin(t, stream, method); err != nil {
		t.Fatal(err)
	}
}

// begin sends the headers of a call without a message.
func (s *speaker) begin(t *testing.T, stream uint32, method string) error {
	t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/test.Service/" + method}, {":authority", "test"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	return s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// answerPings answers pings until the connection ends.
func (s *speaker) answerPings(t *testing.T) {
	done := make(chan struct{})
	t.Cleanup(func() { s.Close(); <-done })
	go func() {
		defer close(done)
		for {
			f, err := s.ReadFrame()
			if err != nil {
				return
			}
			if p, is := f.(*http2.PingFrame); is && !p.IsAck() {
				_ = s.WritePing(true, p.Data)
			}
		}
	}()
}

func stalled(t *testing.T, s *service) {
	t.Helper()
	select {
	case cause := <-s.causes:
		if cause != errStalled { //nolint:errorlint // it is that very error
			t.Errorf("the call ended by %v", cause)
		}
	case <-time.After(patience):
		t.Error("the call goes on")
	}
}

// TestPeersThatMisbehaveAreDropped uses peers that stop at some point of a connection or call, or ping too often.
func TestPeersThatMisbehaveAreDropped(t *testing.T) {
	soon := Limits{Handshake: 200 * time.Millisecond, Stall: 200 * time.Millisecond}
	t.Run("before the preface", func(t *testing.T) {
		dropped(t, dialRaw(t, start(t, soon, &service{})))
	})
	t.Run("within the preface", func(t *testing.T) {
		c := dialRaw(t, start(t, soon, &service{}))
		if _, err := io.WriteString(c, http2.ClientPreface[:10]); err != nil {
			t.Fatal(err)
		}
		dropped(t, c)
	})
	t.Run("within the TLS handshake", func(t *testing.T) {
		c := dialRaw(t, start(t, soon, &service{}, grpc.Creds(credentials.NewTLS(&tls.Config{}))))
		if _, err := c.Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00}); err != nil { // start of a 512-byte record that never arrives
			t.Fatal(err)
		}
		dropped(t, c)
	})
	t.Run("deaf to pings", func(t *testing.T) {
		s := &service{}
		// The system does not permit ping intervals below a second.
		dropped(t, speak(t, start(t, Limits{Ping: time.Second}, s), 1<<16).Conn)
	})
	t.Run("without a call", func(t *testing.T) {
		s := speak(t, start(t, Limits{Idle: 100 * time.Millisecond}, &service{}), 1<<16)
		dropped(t, s.Conn)
	})
	t.Run("pinging without pause", func(t *testing.T) {
		s := speak(t, start(t, Limits{}, &service{}), 1<<16)
		for range 8 {
			if err := s.WritePing(false, [8]byte{}); err != nil {
				break // already dropped
			}
		}
		dropped(t, s.Conn)
	})
	t.Run("before a request", func(t *testing.T) {
		s := &service{}
		c := speak(t, start(t, soon, s), 1<<16)
		c.call(t, 1, "Echo")
		c.answerPings(t)
		stalled(t, s)
	})
	t.Run("within a request", func(t *testing.T) {
		s := &service{}
		c := speak(t, start(t, soon, s), 1<<16)
		c.call(t, 1, "Echo")
		if err := c.WriteData(1, false, []byte{0, 0, 0, 1, 0, 'h', 'a', 'l', 'f'}); err != nil {
			t.Fatal(err)
		}
		c.answerPings(t)
		stalled(t, s)
	})
	t.Run("between messages of an upload", func(t *testing.T) {
		s := &service{}
		c := speak(t, start(t, soon, s), 1<<16)
		c.call(t, 1, "Sink")
		if err := c.WriteData(1, false, []byte{0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		c.answerPings(t)
		stalled(t, s)
	})
	t.Run("asking and never reading", func(t *testing.T) {
		s := &service{flooding: make([]byte, 1<<16)}
		c := speak(t, start(t, Limits{Stall: 200 * time.Millisecond, Ping: time.Hour}, s), 0) // it answers pings
		if err := errors.Join(c.begin(t, 1, "Echo"), c.WriteData(1, true, []byte{0, 0, 0, 0, 0})); err != nil {
			t.Fatal(err)
		}
		dropped(t, c.Conn)
		answersGone(t, s.guard)
	})
	t.Run("within a stream of answers", func(t *testing.T) {
		s := &service{flooding: make([]byte, 1<<20)}
		c := speak(t, start(t, soon, s), 1<<12)
		c.call(t, 1, "Flood")
		c.answerPings(t)
		stalled(t, s)
	})
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func echo(ctx context.Context, conn *grpc.ClientConn, size int) error {
	return conn.Invoke(ctx, "/test.Service/Echo", &wrapperspb.BytesValue{Value: make([]byte, size)}, &wrapperspb.BytesValue{})
}

func TestSlowPeerThatProgressesIsServed(t *testing.T) {
	s := &service{}
	conn := dial(t, start(t, Limits{Stall: time.Minute, AnswerBytes: 12 << 20}, s))
	for range 10 { // a connection may use an eighth of the memory, so two unread answers exceed it
		for _, size := range []int{0, 1 << 20} {
			if err := echo(t.Context(), conn, size); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
	if cause := <-s.causes; cause == errStalled { //nolint:errorlint // it is that very error
		t.Error("a call that was answered is taken for stalled")
	}
}

func TestMessagesAndHeadersAreBounded(t *testing.T) {
	conn := dial(t, start(t, Limits{MessageBytes: 1 << 12, HeaderBytes: 1 << 12}, &service{}))
	if err := echo(t.Context(), conn, 1<<12); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too long: %v", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-long", strings.Repeat("x", 1<<13))
	if err := echo(ctx, conn, 1); err == nil {
		t.Error("headers that are too long got through")
	}
	if err := echo(t.Context(), conn, 1); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	for name, l := range map[string]Limits{"of all": {Connections: 2}, "of a host": {PerHost: 2}} {
		t.Run(name, func(t *testing.T) {
			addr := start(t, l, &service{})
			// A peer that receives the server's settings has been accepted.
			accepted := func() *speaker {
				s := speak(t, addr, 1<<16)
				if _, err := s.ReadFrame(); err != nil {
					t.Fatal(err)
				}
				return s
			}
			first := accepted()
			accepted()
			third := dialRaw(t, addr)
			if _, err := io.WriteString(third, http2.ClientPreface); err == nil {
				_ = http2.NewFramer(third, third).WriteSettings() // otherwise it is dropped as idle
			}
			if n, _ := io.Copy(io.Discard, third); n > 0 {
				t.Errorf("the third connection is answered, with %d bytes", n)
			}
			first.Close()
			for deadline := time.Now().Add(patience); ; {
				s := dialRaw(t, addr)
				_, _ = io.WriteString(s, http2.ClientPreface)
				framer := http2.NewFramer(s, s)
				_ = framer.WriteSettings()
				if _, err := framer.ReadFrame(); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the place of a connection that ended is not given back")
				}
			}
		})
	}
}

// TestThisMachinesConnectionsAreNotCountedByHost allows for tunnels, whose peers all come from this machine.
func TestThisMachinesConnectionsAreNotCountedByHost(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := Limits{PerHost: 1}.Listen(lis, false, func(addr net.Addr, why error) { t.Error("refused ", addr, why) })
	defer bounded.Close()
	for range 3 {
		dialRaw(t, lis.Addr().String())
		c, err := bounded.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
}

func TestCallsBeyondTheStreamLimitWait(t *testing.T) {
	s := &service{flooding: make([]byte, 1<<10)}
	conn := dial(t, start(t, Limits{Streams: 1}, s))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flood, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Service/Flood")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(flood.SendMsg(&wrapperspb.BytesValue{}), flood.RecvMsg(&wrapperspb.BytesValue{})); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- echo(t.Context(), conn, 1) }()
	select {
	case err := <-second:
		t.Fatalf("the second call did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-second; err != nil {
		t.Error(err)
	}
}
