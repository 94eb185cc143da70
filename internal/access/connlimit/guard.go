package connlimit

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Admit decides about a call by its headers; the call uses the returned context. It runs before any part of the
// request is passed on, on the connection's reader goroutine, so it must not block.
type Admit func(ctx context.Context, method string, header metadata.MD) (context.Context, Admission, error)

// Admission describes an admitted call.
type Admission struct {
	// Caller is the caller's identity; empty on an open tracker.
	Caller string
	// Unauthenticated marks unauthenticated calls of public methods.
	Unauthenticated bool
	// Operator marks calls that may use the operators' reserve of connections.
	Operator bool
	// MessageBytes bounds each message of the request; 0 = the general limit.
	MessageBytes int
	// AnswerBytes is the estimated memory for making the answer.
	AnswerBytes int
}

// Config configures a Guard.
type Config struct {
	Limits Limits
	// TLS is the server's configuration; nil = no encryption.
	TLS *tls.Config
	// Admit decides about calls.
	Admit Admit
	// Check validates messages before they are decoded; may be nil.
	Check Check
	// OverBudget, if set, is called for each call whose request or answer exceeds the memory limit.
	OverBudget func(of Memory)
	// Refused, if set, is called for each refused message.
	Refused func(method string, err error)
}

// Memory names one of the memory limits of a server.
type Memory string

// The memory limits.
const (
	RequestMemory Memory = "requests"
	AnswerMemory  Memory = "answers"
)

// minPing is the minimum interval between two pings of a peer.
const minPing = 5 * time.Second

// Guard enforces limits on a server.
type Guard struct {
	Config
	requests, answers *memoryBudget
}

// New returns a Guard.
func New(cfg Config) *Guard {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.OverBudget == nil {
		cfg.OverBudget = func(Memory) {}
	}
	if cfg.Refused == nil {
		cfg.Refused = func(string, error) {}
	}
	return &Guard{cfg, newMemoryBudget(cfg.Limits.RequestBytes, cfg.Limits.MemoryWait), newMemoryBudget(cfg.Limits.AnswerBytes, cfg.Limits.MemoryWait)}
}

// HeldBytes returns the bytes currently held by requests.
func (g *Guard) HeldBytes() int64 { return g.requests.reserved() }

// AnswerBytes returns the bytes currently held by answers.
func (g *Guard) AnswerBytes() int64 { return g.answers.reserved() }

// ServerOptions returns the options that enforce the limits. The services must be registered by Registrar.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	l := g.Limits
	return []grpc.ServerOption{
		grpc.Creds(filtering{serverCredentials(g.TLS), l.Streams, 2 * l.Stall}), grpc.ForceServerCodecV2(newCodec(g.Check)),
		grpc.MaxRecvMsgSize(l.MessageBytes), grpc.MaxSendMsgSize(l.MessageBytes),
		grpc.InitialWindowSize(wire.WindowBytes), grpc.InitialConnWindowSize(wire.WindowBytes),
		grpc.MaxHeaderListSize(l.HeaderBytes), grpc.MaxConcurrentStreams(l.Streams), grpc.ConnectionTimeout(l.Handshake),
		// Boards behind a NAT vanish silently; their long polls must not keep waiting.
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: l.Idle, MaxConnectionAge: l.Age, MaxConnectionAgeGrace: l.AgeGrace, Time: l.Ping, Timeout: l.Ping / 2,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.InTapHandle(g.tap),
		grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream),
	}
}

// serverCredentials returns the server's side of TLS, or of unencrypted connections if config is nil.
func serverCredentials(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(config)
}

// tap is called by the connection's reader when a call's headers have arrived.
func (g *Guard) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	ctx, a, err := g.Admit(ctx, info.FullMethodName, info.Header)
	if err != nil {
		return nil, err
	}
	l, f := g.Limits, filterOf(ctx)
	if f != nil && f.of != nil && f.of.expiry != nil && !a.Operator {
		f.of.expiry.Reset(refusedAge)
		f.of.refuse()
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonOverloaded,
			"%v, and the last %d are for operators: try again later; the operator can raise --max-connections", ErrTooMany, reserveOf(l.Connections))
	}
	by := accountOf(a, f)
	in := &intake{budget: g.requests, account: by, max: cmp.Or(a.MessageBytes, l.MessageBytes), window: wire.WindowBytes}
	if !in.open() {
		g.OverBudget(RequestMemory)
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "the request memory limit is reached: try again later")
	}
	limit := l.Stall
	if a.Unauthenticated {
		limit = min(limit, l.Handshake)
	}
	c := watch(ctx, info.FullMethodName, limit, in)
	c.refused, c.answer = g.Refused, g.answerTo(ctx, a, by)
	if f != nil {
		f.frames.open(in)
	}
	return c, nil
}

// accountOf returns the account of a call. Anonymous callers are counted by address; those of this machine form one
// account without limits.
func accountOf(a Admission, f *filter) account {
	t := account{caller: a.Caller, unauthenticated: a.Unauthenticated, conn: new(int64)}
	if f == nil {
		return t
	}
	t.conn = &f.held
	if host := hostOf(f.RemoteAddr()); a.Unauthenticated || a.Caller == "" && host != "" {
		t.caller = "host " + host
	}
	return t
}

// Limits bound the resources of peers. The zero value of each field except Age means its default.
type Limits struct {
	// Connections bounds all connections of calls together; 16384. The last ones are for operators.
	Connections int
	// WebConnections bounds the connections of pages; defaults to Connections.
	WebConnections int
	// PerHost bounds the connections of one address; 2048, since a whole rack may share one. The local address is
	// exempt: behind a tunnel or proxy, all peers come from there.
	PerHost int
	// Streams bounds the concurrent calls of a connection; further calls wait at the peer. 1024.
	Streams uint32
	// Handshake bounds the duration of a handshake; 10 s.
	Handshake time.Duration
	// Idle is how long a connection without calls stays open; 5 min. The peer reconnects at its next call.
	Idle time.Duration
	// Stall bounds the transfer of a request or of a stream's next message; 2 min. A peer that leaves anything unread
	// for twice that time is dropped.
	Stall time.Duration
	// Age is the maximum age of a connection, after which the peer has to reconnect and authenticate again; 0 = no
	// limit. AgeGrace is the time that calls then have to finish; 5 min.
	Age, AgeGrace time.Duration
	// Ping is the idle time after which a keepalive ping is sent, which must be answered within half that time; 20 s.
	Ping time.Duration
	// HeaderBytes bounds the headers of a call; 16 KiB.
	HeaderBytes uint32
	// MessageBytes bounds a message; wire.MaxMessageBytes.
	MessageBytes int
	// RequestBytes bounds the memory of all requests, as encoded on the wire, from arrival until they are answered;
	// 512 MiB. One caller may use a quarter of it, one connection an eighth. Unauthenticated callers get only a few
	// kilobytes.
	RequestBytes int64
	// MemoryWait is how long a connection waits for memory for received data before it is dropped; 3 s.
	MemoryWait time.Duration
	// AnswerBytes bounds the memory of all answers from their start until the peers have read them, shared like
	// RequestBytes; defaults to RequestBytes.
	AnswerBytes int64
}

// WithDefaults returns the limits with their defaults filled in.
func (l Limits) WithDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 16384)
	l.WebConnections = cmp.Or(l.WebConnections, l.Connections)
	l.PerHost = cmp.Or(l.PerHost, 2048)
	l.Streams = cmp.Or(l.Streams, 1024)
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 5*time.Minute)
	l.Stall = cmp.Or(l.Stall, 2*time.Minute)
	l.AgeGrace = cmp.Or(l.AgeGrace, 5*time.Minute)
	l.Ping = cmp.Or(l.Ping, 20*time.Second)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	l.MessageBytes = cmp.Or(l.MessageBytes, wire.MaxMessageBytes)
	l.RequestBytes = cmp.Or(l.RequestBytes, 512<<20)
	l.MemoryWait = cmp.Or(l.MemoryWait, 3*time.Second)
	l.AnswerBytes = cmp.Or(l.AnswerBytes, l.RequestBytes)
	return l
}
