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

// Admit decides about a call by its headers; the call gets the context that it returns. It is asked before anything of
// the call's request is passed on, by whoever reads from the connection, so it must not wait.
type Admit func(ctx context.Context, method string, header metadata.MD) (context.Context, Admission, error)

// Admission is how a call was let in.
type Admission struct {
	// Caller is who calls; empty where nobody is asked.
	Caller string
	// Stranger calls what is for everybody, and has proved nothing.
	Stranger bool
	// MessageBytes bounds each message of the request; 0 = the limit of all.
	MessageBytes int
	// AnswerBytes is what making its answer may take.
	AnswerBytes int
}

// Config is what a guard needs.
type Config struct {
	Limits Limits
	// TLS is the server's; nil = what travels is not encrypted.
	TLS *tls.Config
	// Admit decides about calls.
	Admit Admit
	// Check looks at messages before they are decoded; nil = nothing does.
	Check Check
	// NoRoom is called for each call whose request or answer finds no room; nil = nothing is.
	NoRoom func(of Room)
	// Refused is called with each message that is refused as such; nil = nothing is.
	Refused func(method string, err error)
}

// Room is one of a server's rooms.
type Room string

// What rooms are for.
const (
	RequestRoom Room = "requests"
	AnswerRoom  Room = "answers"
)

// LeastPing is how much time peers leave between two pings.
const LeastPing = 5 * time.Second

// Guard has a server keep limits.
type Guard struct {
	Config
	room, answers *room
}

// New makes a guard.
func New(cfg Config) *Guard {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.NoRoom == nil {
		cfg.NoRoom = func(Room) {}
	}
	if cfg.Refused == nil {
		cfg.Refused = func(string, error) {}
	}
	return &Guard{
		cfg, newRoom(cfg.Limits.RequestBytes, cfg.Limits.RoomWait), newRoom(cfg.Limits.AnswerBytes, cfg.Limits.RoomWait),
	}
}

// HeldBytes is what requests take now.
func (g *Guard) HeldBytes() int64 { return g.room.taken() }

// AnswerBytes is what answers take now.
func (g *Guard) AnswerBytes() int64 { return g.answers.taken() }

// ServerOptions have a server keep the limits; its services are to be registered by Registrar.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	l := g.Limits
	return []grpc.ServerOption{
		grpc.Creds(filtering{g.credentials(), l.Streams, 2 * l.Stall}), grpc.ForceServerCodecV2(newCodec(g.Check)),
		grpc.MaxRecvMsgSize(l.MessageBytes), grpc.MaxSendMsgSize(l.MessageBytes),
		grpc.InitialWindowSize(wire.WindowBytes), grpc.InitialConnWindowSize(wire.WindowBytes),
		grpc.MaxHeaderListSize(l.HeaderBytes), grpc.MaxConcurrentStreams(l.Streams), grpc.ConnectionTimeout(l.Handshake),
		// Boards behind a NAT vanish without a word; their long polls must not keep their waiters.
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: l.Idle, MaxConnectionAge: l.Age, MaxConnectionAgeGrace: l.AgeGrace, Time: l.Ping, Timeout: l.Ping / 2,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: LeastPing, PermitWithoutStream: true}),
		grpc.InTapHandle(g.tap),
		grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream),
	}
}

func (g *Guard) credentials() credentials.TransportCredentials {
	if g.TLS == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(g.TLS)
}

// tap is called when a call's headers have come, by whoever reads from its connection.
func (g *Guard) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	ctx, a, err := g.Admit(ctx, info.FullMethodName, info.Header)
	if err != nil {
		return nil, err
	}
	l, f := g.Limits, filterOf(ctx)
	by := takerOf(a, f)
	in := &intake{room: g.room, taker: by, most: cmp.Or(a.MessageBytes, l.MessageBytes), window: wire.WindowBytes}
	if !in.open() {
		g.NoRoom(RequestRoom)
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "the requests under way leave no room for this one: try again later")
	}
	limit := l.Stall
	if a.Stranger {
		limit = min(limit, l.Handshake)
	}
	c := watch(ctx, info.FullMethodName, limit, in)
	c.refused, c.answer = g.Refused, g.answerTo(ctx, a, by)
	if f != nil {
		f.frames.open(in)
	}
	return c, nil
}

// takerOf says on whose account a call takes room. Callers whom nobody asks who they are go by their address, and on
// this machine all are one that may have everything.
func takerOf(a Admission, f *filter) taker {
	t := taker{caller: a.Caller, stranger: a.Stranger, conn: new(int64)}
	if f == nil {
		return t
	}
	t.conn = &f.held
	if host := hostOf(f.RemoteAddr()); a.Stranger || a.Caller == "" && host != "" {
		t.caller = "host " + host
	}
	return t
}
