package agent

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// shards has the calls of a connection reach the shards of a farm, each of which is served by one of its trackers. A
// farm of one shard, which most are, is called as if there were none; that there are more is learnt from the refusal
// of the first call that names no shard.
//
// An agent has a session with every shard. What it takes for its session names all of them, and its requests for
// work go to one after the other and then wait with all; so trackers tell each other nothing of agents.
type shards struct {
	several bool         // there are several addresses
	count   atomic.Int32 // 0 = not known, as of a farm of one
	home    atomic.Int32 // where the jobs of who calls are, as far as is known
	turns   turns
	// requests counts those for work that have waited; their numbers are their names.
	requests atomic.Uint64
	// alive is answers.
	alive func(ctx context.Context, conn *grpc.ClientConn, shard int) error
	waits sync.Map // by session: []bool, in which shards work waits for its agent
}

// unary is the interceptor of calls with one answer. It is the outermost.
func (s *shards) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if s.count.Load() == 0 {
		to := ctx
		if shard := shardNamed(ctx, req); shard > 0 {
			to = toShard(ctx, shard)
		}
		err := invoke(to, method, req, reply, conn, opts...)
		count, several := wire.Shard(err, wire.ReasonShards)
		if !several || count < 2 || count > wire.MostShards {
			return err
		}
		s.count.Store(int32(count))
	}
	c := &sharded{shards: s, n: int(s.count.Load()), method: method, reply: reply, do: func(ctx context.Context, method string, req, reply any) error {
		return invoke(ctx, method, req, reply, conn, opts...)
	}}
	c.ask = func(ctx context.Context, shard int) error { return s.alive(ctx, conn, shard) }
	return c.call(ctx, req)
}

// shardKey is where a call's context has the shard that it is for, subjectKey where it has the id of the job or batch
// that it is for the sake of.
type (
	shardKey   struct{}
	subjectKey struct{}
)

// toShard has a call be for a shard.
func toShard(ctx context.Context, shard int) context.Context {
	return metadata.AppendToOutgoingContext(context.WithValue(ctx, shardKey{}, shard), wire.ShardHeader, strconv.Itoa(shard))
}

// shardIn is the shard that a call is for; -1 = it names none.
func shardIn(ctx context.Context) int {
	if shard, is := ctx.Value(shardKey{}).(int); is {
		return shard
	}
	return -1
}

// withSubject says for the sake of which job or batch calls are.
func withSubject(ctx context.Context, subject string) context.Context {
	return context.WithValue(ctx, subjectKey{}, subject)
}

// shardNamed is the shard of the job or batch that a request is about, or is for the sake of; -1 = of none.
func shardNamed(ctx context.Context, req any) int {
	if of, is := req.(interface{ GetJobId() string }); is {
		return wire.ShardOf(of.GetJobId())
	}
	if of, is := req.(interface{ GetLease() *tilthv1.LeaseToken }); is {
		return wire.ShardOf(of.GetLease().GetSubject())
	}
	switch req.(type) {
	case *tilthv1.StatArtifactRequest, *tilthv1.DownloadArtifactRequest, *tilthv1.UploadArtifactRequest:
		if subject, is := ctx.Value(subjectKey{}).(string); is {
			return wire.ShardOf(subject)
		}
	}
	return -1
}

// sharded is a call to a farm of n shards.
type sharded struct {
	*shards
	n      int
	method string
	reply  any
	do     func(ctx context.Context, method string, req, reply any) error
	// ask asks whether the tracker of a shard is there, for calls of all of them; nil = they have a time of their own.
	ask func(ctx context.Context, shard int) error
}

func (c *sharded) invoke(ctx context.Context, req, reply any) error {
	return c.do(ctx, c.method, req, reply)
}

// call makes the call where it is to be made.
func (c *sharded) call(ctx context.Context, req any) error {
	switch req := req.(type) {
	case *tilthv1.JoinRequest:
		return c.join(ctx, req)
	case *tilthv1.HeartbeatRequest:
		return c.heartbeat(ctx, req)
	case *tilthv1.LeaseWorkRequest:
		return c.lease(ctx, req)
	case *tilthv1.LeaveRequest:
		c.waits.Delete(req.GetSession())
		return c.withSessions(ctx, req.GetSession(), func(session string) proto.Message { return &tilthv1.LeaveRequest{Session: session} })
	case *tilthv1.ReportCalibrationRequest:
		return c.withSessions(ctx, req.GetSession(), func(session string) proto.Message {
			own := proto.CloneOf(req)
			own.Session = session
			return own
		})
	case *tilthv1.SubmitJobRequest:
		return c.submit(ctx, req)
	}
	if shard := shardNamed(ctx, req); shard >= 0 {
		return c.invoke(toShard(ctx, shard), req, c.reply)
	}
	if wire.AnyShard(c.method) {
		return c.invoke(ctx, req, c.reply)
	}
	return c.all(ctx, func(int) proto.Message { return req.(proto.Message) })
}

// each makes a call to every shard at once; request says what each is asked for.
func (c *sharded) each(ctx context.Context, request func(shard int) proto.Message) (replies []proto.Message, failed []error) {
	replies, failed = make([]proto.Message, c.n), make([]error, c.n)
	var all sync.WaitGroup
	for shard := range c.n {
		replies[shard] = c.reply.(proto.Message).ProtoReflect().New().Interface()
		all.Go(func() {
			failed[shard] = c.attend(ctx, shard, func(ctx context.Context) error {
				return c.invoke(toShard(ctx, shard), request(shard), replies[shard])
			})
		})
	}
	all.Wait()
	return replies, failed
}

// attend makes a call of a shard, for as long as its tracker is there.
func (c *sharded) attend(ctx context.Context, shard int, call func(context.Context) error) error {
	if c.ask == nil {
		return call(ctx)
	}
	to, end := context.WithCancel(ctx)
	defer end()
	return attend(ctx, shard, func(ctx context.Context) error { return c.ask(ctx, shard) }, end, func() error { return call(to) })
}

// all makes a call to every shard, of which all have to succeed, and puts their answers together.
func (c *sharded) all(ctx context.Context, request func(shard int) proto.Message) error {
	replies, failed := c.each(ctx, request)
	if err := cmp.Or(failed...); err != nil {
		return err
	}
	into := c.reply.(proto.Message)
	proto.Reset(into)
	proto.Merge(into, together(replies))
	return nil
}

// submit hands a job to the shard of its owner, which is learnt from the one that is asked first.
func (c *sharded) submit(ctx context.Context, req *tilthv1.SubmitJobRequest) error {
	home := min(int(c.home.Load()), c.n-1)
	err := c.invoke(toShard(ctx, home), req, c.reply)
	if other, is := wire.Shard(err, wire.ReasonOtherShard); is && other != home && other < c.n {
		c.home.Store(int32(other))
		return c.invoke(toShard(ctx, other), req, c.reply)
	}
	return err
}
