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
