package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// sessionSeparator stands between the sessions of an agent with each shard.
const sessionSeparator = "."

// split are the sessions with each shard; those of before the farm had its shards are void.
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
		return err // those that were joined are joined anew, or forget it
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
	into := c.reply.(*tilthv1.JoinResponse)
	proto.Reset(into)
	proto.Merge(into, joined)
	return nil
}

// sooner is the shorter of two times, of which one may be absent.
func sooner(a, b *durationpb.Duration) *durationpb.Duration {
	if a == nil || b != nil && b.AsDuration() < a.AsDuration() {
		return b
	}
	return a
}

// withSessions makes a call to every shard, with the session of each.
func (c *sharded) withSessions(ctx context.Context, session string, request func(session string) proto.Message) error {
	sessions, err := c.split(session)
	if err != nil {
		return err
	}
	return c.all(ctx, func(shard int) proto.Message { return request(sessions[shard]) })
}

// heartbeat tells every shard that its session and its leases live, and which of them have an agent that another one
// has work for. A shard that does not answer knows that a while later; it costs the others nothing, since it has half
// of the time, an interval, after which all are told again.
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
	waits := c.heard(req.GetSession())
	replies, failed := c.each(ctx, func(shard int) proto.Message {
		elsewhere := slices.Clone(waits)
		elsewhere[shard] = false
		return &tilthv1.HeartbeatRequest{Session: sessions[shard], Leases: leases[shard], WantedElsewhere: slices.Contains(elsewhere, true)}
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

// heard says in which shards work waits for the agent of a session, as the last heartbeat was told.
func (c *sharded) heard(session string) []bool {
	if heard, is := c.waits.Load(session); is {
		if waits := heard.([]bool); len(waits) == c.n {
			return waits
		}
	}
	return make([]bool, c.n)
}
