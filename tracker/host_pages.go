package tracker

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/access/authorisation"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// hostMetrics are those of the process, with those of each shard.
type hostMetrics struct{ *Host }

// Gather implements prometheus.Gatherer.
func (m hostMetrics) Gather() ([]*dto.MetricFamily, error) {
	all := prometheus.Gatherers{m.cfg.Metrics}
	for _, one := range m.all() {
		all = append(all, one.metrics)
	}
	return all.Gather()
}

// hostConn is a connection to the services of the shards that the host has.
type hostConn struct{ *Host }

// jobbed is a request about a job.
type jobbed interface{ GetJobId() string }

// to is the shard that a request is for. What is only to be read of a job, any tells.
func (c hostConn) to(method string, request any) (*hosted, error) {
	all := c.all()
	if len(all) == 0 {
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", errStandsBy)
	}
	about, is := request.(jobbed)
	if !is {
		return all[0], nil
	}
	shard := wire.ShardOf(about.GetJobId())
	if one := c.of(shard); one != nil {
		return one, nil
	}
	if method == tilthv1.JobService_GetJob_FullMethodName || method == tilthv1.JobService_WatchJob_FullMethodName {
		return all[0], nil
	}
	return nil, errElsewhere(shard)
}

// Invoke implements grpc.ClientConnInterface.
func (c hostConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	one, err := c.to(method, args)
	if err != nil {
		return err
	}
	return one.conn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c hostConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return &hostStream{conn: c, ctx: ctx, desc: desc, method: method, opts: opts}, nil
}

// hostStream is a stream from the server, which begins when its request tells the shard.
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
	one, err := s.conn.to(s.method, m)
	if err == nil {
		s.ClientStream, err = one.conn.NewStream(s.ctx, s.desc, s.method, s.opts...)
	}
	if err != nil {
		return err
	}
	return s.ClientStream.SendMsg(proto.Clone(m.(proto.Message)))
}

// Context implements grpc.ClientStream.
func (s *hostStream) Context() context.Context { return s.ctx }

// hostHoldings tells the gate whose a job or a session is.
type hostHoldings struct{ *Host }

// JobOwner implements authorisation.Holdings.
func (h hostHoldings) JobOwner(id string) (owner string, ok bool) {
	for _, one := range h.all() {
		if owner, ok = (holdings{one.engine}).JobOwner(id); ok {
			return owner, true
		}
	}
	return "", false
}

// Session implements authorisation.Holdings.
func (h hostHoldings) Session(session string) (out authorisation.Session, ok bool) {
	for _, one := range h.all() {
		if out, ok = (holdings{one.engine}).Session(session); ok {
			return out, true
		}
	}
	return out, false
}

// Sessions implements authorisation.Holdings: agents have a session with each shard.
func (h hostHoldings) Sessions(identity string) (count int) {
	for _, one := range h.all() {
		count += one.engine.Members().Of(identity)
	}
	return count
}
