package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// heartbeatsPerSecond are those of all agents of a large farm together.
	heartbeatsPerSecond = 1000
	// joinsAtOnce bounds how many agents connect at the same time.
	joinsAtOnce = 256
	// A builder has several slots, and each asks for work of its own.
	devicesPerBuilder, slots = 100, 16
	// jobs propose batches at the same time.
	jobs = 100
)

// trade is a kind of agent that waits for work.
type trade struct {
	// name begins the sessions of its agents.
	name string
	// takes is how long a batch takes in the mean.
	takes time.Duration
	// results are what its report brings.
	results int
	report  func(ctx context.Context, conn grpc.ClientConnInterface, token *tilthv1.LeaseToken) error
}

var (
	builder = trade{"builder", 500 * time.Millisecond, 0, func(ctx context.Context, conn grpc.ClientConnInterface, token *tilthv1.LeaseToken) error {
		_, err := tilthv1.NewBuildServiceClient(conn).ReportBuild(ctx, &tilthv1.ReportBuildRequest{
			Lease: token, Outcomes: outcomes(), Artifacts: []*tilthv1.ArtifactRef{object},
		})
		return err
	}}
	runner = trade{"runner", wire.BatchCandidates * 30 * time.Millisecond, wire.BatchCandidates, func(ctx context.Context, conn grpc.ClientConnInterface, token *tilthv1.LeaseToken) error {
		_, err := tilthv1.NewMeasureServiceClient(conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
			Lease: token, Measurements: measurements(),
		})
		return err
	}}
)

// fleet is all agents of a farm.
type fleet struct {
	variant
	meter meter
	conns []*grpc.ClientConn
	// beat is how often an agent sends a heartbeat.
	beat    time.Duration
	places  chan struct{}
	members sync.WaitGroup
	joined  sync.WaitGroup
	fail    context.CancelCauseFunc
}

// begin connects a farm of so many devices and results a second to a server, and returns once all agents have joined.
// An agent's failure ends the context that it returns.
func (v variant) begin(ctx context.Context, addr string, devices int, rate float64) (context.Context, *fleet, error) {
	builders := max(2, devices/devicesPerBuilder)
	agents := devices + builders
	f := &fleet{variant: v, places: make(chan struct{}, joinsAtOnce), beat: time.Duration(agents) * time.Second / heartbeatsPerSecond}
	ctx, f.fail = context.WithCancelCause(ctx)
	for range (agents + v.share - 1) / v.share {
		conn, err := agent.Dial(addr, grpc.WithReadBufferSize(readBufferBytes))
		if err != nil {
			return ctx, nil, errors.Join(err, f.end())
		}
		f.conns = append(f.conns, conn)
	}
	for i := range builders {
		f.join(ctx, builder, i, slots)
	}
	for i := range devices {
		working := 1
		if float64(i) < v.silent*float64(devices) {
			working = 0
		}
		f.join(ctx, runner, builders+i, working)
	}
	f.joined.Wait()
	every := time.Duration(jobs * wire.BatchCandidates / rate * float64(time.Second))
	for i := range jobs {
		f.member(func() error { return f.propose(ctx, f.conns[i%len(f.conns)], every) })
	}
	return ctx, f, context.Cause(ctx)
}

// end has all agents vanish.
func (f *fleet) end() (err error) {
	f.fail(nil)
	f.members.Wait()
	for _, conn := range f.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// member runs what ends with the farm, or ends it.
func (f *fleet) member(run func() error) {
	f.members.Go(func() {
		if err := run(); err != nil {
			f.fail(err)
		}
	})
}

// join brings in the n-th agent, which works in so many slots.
func (f *fleet) join(ctx context.Context, of trade, n, slots int) {
	conn, session := f.conns[n%len(f.conns)], fmt.Sprintf("%s-%05d", of.name, n)
	f.joined.Add(1)
	f.member(func() error {
		f.places <- struct{}{}
		_, err := tilthv1.NewAgentServiceClient(conn).Heartbeat(ctx, &tilthv1.HeartbeatRequest{Session: session})
		<-f.places
		f.joined.Done()
		if err != nil {
			return unlessEnded(ctx, err)
		}
		for range slots {
			f.member(func() error { return f.work(ctx, conn, of, session) })
		}
		return f.heartbeats(ctx, conn, session)
	})
}

// unlessEnded is an error, unless it comes of the farm's end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *fleet) heartbeats(ctx context.Context, conn *grpc.ClientConn, session string) error {
	client := tilthv1.NewAgentServiceClient(conn)
	for wait := rand.N(f.beat); retry.Sleep(ctx, wait) == nil; wait = f.beat {
		err := f.short(0, func() error {
			_, err := client.Heartbeat(ctx, &tilthv1.HeartbeatRequest{Session: session})
			return err
		})
		if err != nil {
			return unlessEnded(ctx, err)
		}
	}
	return nil
}

// propose hands in a batch at such intervals.
func (f *fleet) propose(ctx context.Context, conn *grpc.ClientConn, every time.Duration) error {
	client, proposed := tilthv1.NewSearchServiceClient(conn), candidates(true)
	if retry.Sleep(ctx, rand.N(every)) != nil {
		return nil
	}
	for tick := time.NewTicker(every); ; {
		err := f.short(0, func() error {
			token := &tilthv1.LeaseToken{Session: jobID, Subject: stamp(time.Now()), Attempt: 1}
			_, err := client.ProposeBatch(ctx, &tilthv1.ProposeBatchRequest{Lease: token, Candidates: proposed})
			return err
		})
		if err != nil {
			return unlessEnded(ctx, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return nil
		}
	}
}

// work waits for work and does it, again and again.
func (f *fleet) work(ctx context.Context, conn *grpc.ClientConn, of trade, session string) error {
	ask, err := f.asking(ctx, conn)
	for err == nil {
		asked := time.Now()
		var work *tilthv1.LeaseWorkResponse
		if work, err = ask(&tilthv1.LeaseWorkRequest{Session: session, Wait: durationpb.New(wire.LongestWait)}); err != nil || work.GetLease() == nil {
			continue
		}
		if err = f.granted(work, asked); err != nil {
			continue
		}
		if err = retry.Sleep(ctx, of.takes/2+rand.N(of.takes)); err != nil {
			continue
		}
		err = f.short(of.results, func() error {
			return of.report(ctx, conn, &tilthv1.LeaseToken{Session: session, Subject: stamp(time.Now()), Attempt: 1})
		})
	}
	return unlessEnded(ctx, err)
}

// asking is how an agent asks for work: by calls, or on a stream of its own.
func (f *fleet) asking(ctx context.Context, conn *grpc.ClientConn) (func(*tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error), error) {
	if !f.stream {
		client := tilthv1.NewAgentServiceClient(conn)
		return func(r *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) { return client.LeaseWork(ctx, r) }, nil
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, leasesMethod)
	if err != nil {
		return nil, err
	}
	return func(r *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
		if err := stream.SendMsg(r); err != nil {
			return nil, err
		}
		work := &tilthv1.LeaseWorkResponse{}
		return work, stream.RecvMsg(work)
	}, nil
}

// granted notes work that an agent asked for at a time and has now.
func (f *fleet) granted(work *tilthv1.LeaseWorkResponse, asked time.Time) error {
	now := time.Now()
	made, err := stamped(work.GetLease().GetSubject())
	if err != nil {
		return err
	}
	f.meter.grant(min(now.Sub(asked), now.Sub(made)))
	return nil
}

// short makes a call that waits for nothing and brings results.
func (f *fleet) short(results int, call func() error) error {
	began := time.Now()
	err := call()
	if err == nil {
		f.meter.shortCall(time.Since(began), results)
	}
	return err
}
