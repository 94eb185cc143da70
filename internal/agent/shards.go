package agent

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// shards routes the calls of a connection to the shards of a farm, each served by one of its trackers. A farm
// with one shard, the usual case, is called without routing. The refusal of the first call without a shard
// reveals that there are more.
//
// An agent has a session with every shard, and the token of its session names all of them. Requests for work go to one
// shard after the other and then wait at all of them, so trackers need not exchange information about agents.
type shards struct {
	several bool         // whether there are several addresses
	count   atomic.Int32 // 0 if unknown, as for a farm with one shard
	home    atomic.Int32 // the shard of the caller's jobs, if known
	turns   turns
	// requests counts the waiting requests for work and provides their names.
	requests atomic.Uint64
	// alive checks a shard's tracker; it is answers, except in tests.
	alive func(ctx context.Context, conn *grpc.ClientConn, shard int) error
	waits sync.Map // by session: []bool of the shards where work waits for its agent
}

// unary is the interceptor of unary calls. It must be the outermost.
func (s *shards) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if s.count.Load() == 0 {
		to := ctx
		if shard := shardNamed(ctx, req); shard > 0 {
			to = toShard(ctx, shard)
		}
		err := invoke(to, method, req, reply, conn, opts...)
		count, several := wire.Shard(err, wire.ReasonShards)
		if !several || count < 2 || count > wire.MaxShards {
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

// shardKey and subjectKey are the context keys of a call's shard and of the job or batch that it concerns.
type (
	shardKey   struct{}
	subjectKey struct{}
)

// toShard addresses calls to a shard.
func toShard(ctx context.Context, shard int) context.Context {
	return metadata.AppendToOutgoingContext(context.WithValue(ctx, shardKey{}, shard), wire.ShardHeader, strconv.Itoa(shard))
}

// shardIn returns the shard that a call is addressed to, or -1.
func shardIn(ctx context.Context) int {
	if shard, is := ctx.Value(shardKey{}).(int); is {
		return shard
	}
	return -1
}

// shardNamed returns the shard of the job or batch that a request concerns, or -1.
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

// sharded is a call to a farm with n shards.
type sharded struct {
	*shards
	n      int
	method string
	reply  any
	do     func(ctx context.Context, method string, req, reply any) error
	// ask checks whether the tracker of a shard responds, for calls to all shards; nil if calls have their
	// own time limit.
	ask func(ctx context.Context, shard int) error
}

func (c *sharded) invoke(ctx context.Context, req, reply any) error {
	return c.do(ctx, c.method, req, reply)
}

// answer sets the reply to a message, or to an empty one if it is nil.
func (c *sharded) answer(m proto.Message) {
	proto.Reset(c.reply.(proto.Message))
	if m != nil {
		proto.Merge(c.reply.(proto.Message), m)
	}
}

// call sends the call to its shard or shards.
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

// each calls every shard concurrently; request returns the request for a shard.
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

// attend calls a shard for as long as its tracker responds.
func (c *sharded) attend(ctx context.Context, shard int, call func(context.Context) error) error {
	if c.ask == nil {
		return call(ctx)
	}
	to, end := context.WithCancel(ctx)
	defer end()
	return attend(ctx, shard, func(ctx context.Context) error { return c.ask(ctx, shard) }, end, func() error { return call(to) })
}

// all calls every shard and merges the responses. All calls must succeed.
func (c *sharded) all(ctx context.Context, request func(shard int) proto.Message) error {
	replies, failed := c.each(ctx, request)
	if err := cmp.Or(failed...); err != nil {
		return err
	}
	c.answer(together(replies))
	return nil
}

// submit submits a job to the shard of its owner, which the first shard that is asked names.
func (c *sharded) submit(ctx context.Context, req *tilthv1.SubmitJobRequest) error {
	home := min(int(c.home.Load()), c.n-1)
	err := c.invoke(toShard(ctx, home), req, c.reply)
	if other, is := wire.Shard(err, wire.ReasonOtherShard); is && other != home && other < c.n {
		c.home.Store(int32(other))
		return c.invoke(toShard(ctx, other), req, c.reply)
	}
	return err
}

const (
	// askAfter is how long a call to one of all shards may take before its tracker is checked, and the
	// interval of further checks.
	askAfter = 2500 * time.Millisecond
	// answerTime is the time limit of a check, equal to that of a heartbeat.
	answerTime = 5 * time.Second
)

// answers checks whether the tracker of a shard responds.
func answers(ctx context.Context, conn *grpc.ClientConn, shard int) error {
	_, err := healthv1.NewHealthClient(conn).Check(toShard(ctx, shard), &healthv1.HealthCheckRequest{})
	return err
}

// silent reports whether a tracker did not respond to a check. A tracker that refuses for rate or capacity
// did respond.
func silent(err error) bool {
	_, later := wire.RetryAfter(err)
	return retry.Lost(err) && !later && wire.Reason(err) != wire.ReasonOverloaded
}

// attend runs a possibly long operation that the tracker of a shard should answer, and calls end if the
// tracker stops responding. A stopped process still accepts calls and holds them for as long as they last.
// The error is then transient, because another tracker takes over.
func attend(ctx context.Context, shard int, alive func(context.Context) error, end func(), do func() error) error {
	done, said := make(chan error, 1), make(chan error, 1)
	go func() { done <- do() }()
	ask := time.NewTimer(askAfter)
	defer ask.Stop()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ask.C:
			go func() {
				within, cancel := context.WithTimeout(asking, answerTime)
				defer cancel()
				said <- alive(within)
			}()
		case err := <-said:
			if !silent(err) || ctx.Err() != nil {
				ask.Reset(askAfter)
				continue
			}
			end()
			if ended := <-done; status.Code(ended) != codes.Canceled && !errors.Is(ended, io.EOF) {
				return ended // that error describes the cause better
			}
			return status.Errorf(codes.Unavailable, "the tracker of shard %d does not answer: %s", shard, status.Convert(err).Message())
		}
	}
}

// sessionSeparator separates the sessions of an agent with each shard.
const sessionSeparator = "."

// split returns the session with each shard. A session from before the farm had shards is void.
func (c *sharded) split(session string) ([]string, error) {
	parts := strings.Split(session, sessionSeparator)
	if len(parts) != c.n {
		return nil, wire.Refuse(codes.NotFound, wire.ReasonVoidSession, "the session is not one with %d shards: join again", c.n)
	}
	return parts, nil
}

// join joins every shard.
func (c *sharded) join(ctx context.Context, req *tilthv1.JoinRequest) error {
	replies, failed := c.each(ctx, func(int) proto.Message { return req })
	if err := cmp.Or(failed...); err != nil {
		return err // joined shards are joined again or forget the agent
	}
	var sessions []string
	joined := &tilthv1.JoinResponse{}
	for _, reply := range replies {
		r := reply.(*tilthv1.JoinResponse)
		sessions = append(sessions, r.GetSession())
		joined.Calibrate = joined.GetCalibrate() || r.GetCalibrate()
		joined.HeartbeatInterval = sooner(joined.GetHeartbeatInterval(), r.GetHeartbeatInterval())
	}
	joined.Session = strings.Join(sessions, sessionSeparator)
	c.answer(joined)
	return nil
}

// sooner returns the shorter of two durations, which may be nil.
func sooner(a, b *durationpb.Duration) *durationpb.Duration {
	if a == nil || b != nil && b.AsDuration() < a.AsDuration() {
		return b
	}
	return a
}

// withSessions calls every shard with its session.
func (c *sharded) withSessions(ctx context.Context, session string, request func(session string) proto.Message) error {
	sessions, err := c.split(session)
	if err != nil {
		return err
	}
	return c.all(ctx, func(shard int) proto.Message { return request(sessions[shard]) })
}

// heartbeat renews the session and leases at every shard, and sends each shard the list of shards that have work for
// the agent. A shard that does not answer within half of the interval does not delay the others. It gets the list
// with the next heartbeat.
func (c *sharded) heartbeat(ctx context.Context, req *tilthv1.HeartbeatRequest) error {
	sessions, err := c.split(req.GetSession())
	if err != nil {
		return err
	}
	leases := make([][]*tilthv1.LeaseToken, c.n)
	for _, l := range req.GetLeases() {
		if shard := wire.ShardOf(l.GetSubject()); shard < c.n {
			leases[shard] = append(leases[shard], l)
		}
	}
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	c.ask = nil
	waits := c.waitingShards(req.GetSession())
	replies, failed := c.each(ctx, func(shard int) proto.Message {
		elsewhere := slices.Clone(waits)
		elsewhere[shard] = false
		return &tilthv1.HeartbeatRequest{Session: sessions[shard], Leases: leases[shard], WantedElsewhere: slices.Contains(elsewhere, true),
			MachineHeldBy: req.GetMachineHeldBy()}
	})
	into := c.reply.(*tilthv1.HeartbeatResponse)
	proto.Reset(into)
	heard := make([]bool, c.n)
	answered := false
	for shard, reply := range replies {
		if wire.Reason(failed[shard]) == wire.ReasonVoidSession {
			c.waits.Delete(req.GetSession())
			return failed[shard]
		}
		if failed[shard] != nil {
			continue
		}
		r := reply.(*tilthv1.HeartbeatResponse)
		answered, heard[shard] = true, r.GetWorkWaits()
		into.Dropped = append(into.Dropped, r.GetDropped()...)
		into.Calibrate = into.GetCalibrate() || r.GetCalibrate()
		into.HeartbeatInterval = sooner(into.GetHeartbeatInterval(), r.GetHeartbeatInterval())
	}
	if !answered {
		return cmp.Or(failed...)
	}
	c.waits.Store(req.GetSession(), heard)
	return nil
}

// waitingShards returns the shards where work waits for the agent of a session, according to the last heartbeat.
func (c *sharded) waitingShards(session string) []bool {
	if heard, is := c.waits.Load(session); is {
		if waits := heard.([]bool); len(waits) == c.n {
			return waits
		}
	}
	return make([]bool, c.n)
}
