package tracker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// hostMetrics gathers the metrics of the process and of its shards.
type hostMetrics struct{ *Host }

// Gather implements prometheus.Gatherer.
func (m hostMetrics) Gather() ([]*dto.MetricFamily, error) {
	all := prometheus.Gatherers{m.cfg.Metrics}
	for _, one := range m.all() {
		all = append(all, one.metrics)
	}
	return all.Gather()
}

// hostConn is a connection to the services of all shards, whether this host or another process serves them.
type hostConn struct{ *Host }

// jobRequest is a request about a job.
type jobRequest interface{ GetJobId() string }

// answeredByAny lists methods for which any shard's answer will do, since agents join every shard.
var answeredByAny = []string{
	tilthv1.AgentService_ListAgents_FullMethodName, tilthv1.AgentService_GetAgent_FullMethodName,
	tilthv1.DeviceService_ListDevices_FullMethodName, tilthv1.DeviceService_GetDevice_FullMethodName,
	tilthv1.ArtifactService_StatArtifact_FullMethodName, tilthv1.ArtifactService_DownloadArtifact_FullMethodName,
}

// Destinations that are no particular shard.
const (
	anyShard  = -1
	allShards = -2
)

// shardFor returns the shard that a request is for. Stored data of a job can be read from any shard.
func (c hostConn) shardFor(ctx context.Context, method string, request any) int {
	if c.cfg.Shards == 1 {
		return anyShard
	}
	submission, is := request.(*tilthv1.SubmitJobRequest)
	if is || method == tilthv1.ArtifactService_UploadArtifact_FullMethodName { // the page submits the job that needs the artifact
		owner := submission.GetSpec().GetOwner()
		if caller, known := access.From(ctx); known {
			owner = caller.Name
		}
		return wire.ShardOfOwner(owner, c.cfg.Shards)
	}
	if wire.AnyShard(method) || slices.Contains(answeredByAny, method) {
		return anyShard // even if it names a job: records use that only to find the owner
	}
	if about, is := request.(jobRequest); is {
		shard := wire.ShardOf(about.GetJobId())
		read := method == tilthv1.JobService_GetJob_FullMethodName || method == tilthv1.JobService_WatchJob_FullMethodName
		if read && !c.Has(shard) {
			return anyShard
		}
		return shard
	}
	return allShards
}

// local returns a hosted shard, any one for anyShard, or nil.
func (c hostConn) local(shard int) *hosted {
	if shard != anyShard {
		return c.shard(shard)
	}
	if all := c.all(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Invoke implements grpc.ClientConnInterface.
func (c hostConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	invoke := func(ctx context.Context, shard int, req, reply any) error {
		if one := c.local(shard); one != nil {
			return one.conn.Invoke(ctx, method, req, reply, opts...)
		}
		return c.elsewhere(ctx, shard, method, req, reply)
	}
	shard := c.shardFor(ctx, method, args)
	if shard == allShards {
		return c.cfg.Spread(ctx, c.cfg.Shards, method, args, reply, invoke)
	}
	return invoke(ctx, shard, args, reply)
}

// elsewhereTime bounds a call to another tracker.
const elsewhereTime = 10 * time.Second

// elsewhere forwards a call to the tracker of a shard, on behalf of the caller.
func (h *Host) elsewhere(ctx context.Context, shard int, method string, req, reply any) error {
	if shard == anyShard || h.cfg.Elsewhere == nil {
		return wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", h.why())
	}
	authorization, err := h.gate.ForwardedAuthorization(ctx)
	if err != nil {
		return status.Errorf(status.Code(err), "another tracker has shard %d, which the call is for: %s", shard, status.Convert(err).Message())
	}
	within, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	err = h.cfg.Elsewhere(within, shard, authorization, method, req, reply)
	if err != nil && ctx.Err() == nil && noAnswer(err) {
		h.cfg.Logger.Warn("call not forwarded", "shard", shard, "method", method, "error", err)
		return wire.Refuse(codes.Unavailable, wire.ReasonStandby,
			"the tracker of shard %d, which the call is for, does not answer: another one takes over within seconds, so try again", shard)
	}
	return err
}

// noAnswer reports whether an error means that no tracker of the shard answered.
func noAnswer(err error) bool {
	code, reason := status.Code(err), wire.Reason(err)
	return code == codes.DeadlineExceeded || code == codes.Unavailable && (reason == "" || reason == wire.ReasonStandby)
}

// NewStream implements grpc.ClientConnInterface.
func (c hostConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return &hostStream{conn: c, ctx: ctx, desc: desc, method: method, opts: opts}, nil
}

// hostStream is a stream that starts once its first request identifies the shard.
type hostStream struct {
	grpc.ClientStream
	conn   hostConn
	ctx    context.Context
	desc   *grpc.StreamDesc
	method string
	opts   []grpc.CallOption
}

// SendMsg implements grpc.ClientStream.
func (s *hostStream) SendMsg(m any) error {
	if s.ClientStream != nil {
		return s.ClientStream.SendMsg(m)
	}
	one := s.conn.local(s.conn.shardFor(s.ctx, s.method, m))
	if one == nil {
		return wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", s.conn.why())
	}
	var err error
	if s.ClientStream, err = one.conn.NewStream(s.ctx, s.desc, s.method, s.opts...); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(proto.Clone(m.(proto.Message)))
}

// Context implements grpc.ClientStream.
func (s *hostStream) Context() context.Context { return s.ctx }

// hostHoldings answers the gate's questions about jobs and sessions.
type hostHoldings struct{ *Host }

// JobOwner implements authz.Holdings.
func (h hostHoldings) JobOwner(id string) (owner authz.Owner, is bool, err error) {
	for _, one := range h.all() {
		owner, is, failed := (holdings{one.coordinator}).JobOwner(id)
		if is {
			return owner, true, nil
		}
		err = cmp.Or(err, failed)
	}
	return authz.Owner{}, false, err
}

// Session implements authz.Holdings.
func (h hostHoldings) Session(session string) (out authz.Session, ok bool) {
	for _, one := range h.all() {
		if out, ok = (holdings{one.coordinator}).Session(session); ok {
			return out, true
		}
	}
	return out, false
}

// Sessions implements authz.Holdings. Agents have a session with each shard.
func (h hostHoldings) Sessions(identity string) (count int) {
	for _, one := range h.all() {
		count += one.coordinator.Members().Of(identity)
	}
	return count
}
