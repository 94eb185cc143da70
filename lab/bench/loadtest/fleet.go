package loadtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// agentsAtOnce bounds the number of agents that join concurrently at the start.
const agentsAtOnce = 256

// fleet is shared by the agents of a simulation.
type fleet struct {
	Options
	// log receives the agents' messages, which are discarded.
	log    *slog.Logger
	conns  []*grpc.ClientConn
	ledger *ledger
	meter  *meter
	pace   *pace
	object *tilthv1.ArtifactRef
	owners []string

	// name distinguishes this farm's requests from earlier ones on the same data.
	name      string
	submitted atomic.Int64
	lives     atomic.Int64
	agents    sync.WaitGroup
	// failed is cancelled by stop. Its cause is the error of an agent that cannot live.
	failed context.Context
	stop   context.CancelCauseFunc

	mu    sync.Mutex
	lines map[*line]struct{} // in use
}

// newFleet connects to trackers at comma-separated addresses, and uploads the one file that stands for every
// artifact.
func newFleet(ctx context.Context, o Options, addresses string) (*fleet, error) {
	f := &fleet{
		Options: o, log: slog.New(slog.DiscardHandler), name: rand.Text(), owners: owners(o.Shards), ledger: newLedger(o.Tasks),
		meter: newMeter(), pace: &pace{rate: o.Rate}, lines: map[*line]struct{}{},
	}
	for range o.Connections {
		conn, err := agent.Dial(addresses, grpc.WithReadBufferSize(4<<10))
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.conns = append(f.conns, conn)
	}
	if err := f.upload(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) upload(ctx context.Context) error {
	path := filepath.Join(f.Dir, "object")
	if err := os.WriteFile(path, bytes.Repeat([]byte("object "), 512), 0o644); err != nil {
		return fmt.Errorf("write what stands for objects: %w", err)
	}
	var err error
	f.object, err = artifact.NewClient(f.conns[0], nil, f.log).Upload(ctx, wire.RoleCandidates, path)
	return err
}

func (f *fleet) close() (err error) {
	for _, c := range f.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}

// begin makes all agents join and submits the first jobs. It returns when both are done.
func (f *fleet) begin(ctx context.Context) error {
	ctx, f.stop = context.WithCancelCause(ctx)
	f.failed = ctx
	joined := make(chan struct{}, f.Options.agents())
	places := make(chan struct{}, agentsAtOnce)
	begin := func(kind tilthv1.AgentKind, count, slots int) {
		for i := range count {
			n := uint64(f.lives.Add(1))
			spec := agentSpec(kind, i)
			f.agents.Go(func() { f.live(ctx, spec, n, slots, places, joined) })
		}
	}
	begin(tilthv1.AgentKind_AGENT_KIND_RUNNER, f.Devices, 1)
	begin(tilthv1.AgentKind_AGENT_KIND_BUILDER, f.Builders, 16)
	begin(tilthv1.AgentKind_AGENT_KIND_TUNER, f.Tuners, (f.Jobs+f.Tuners-1)/f.Tuners)
	for range f.Options.agents() {
		select {
		case <-joined:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	client := f.line(0, newDice(f.Seed, 0))
	for range f.Jobs {
		if err := f.submit(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// end stops all agents abruptly, after their tracker was killed.
func (f *fleet) end() error {
	f.stop(nil)
	f.mu.Lock()
	for l := range f.lines {
		l.cut()
	}
	f.mu.Unlock()
	f.agents.Wait()
	return f.close()
}

// line creates the connection of the n-th agent.
func (f *fleet) line(n uint64, d *dice) *line {
	return &line{
		ClientConnInterface: f.conns[n%uint64(len(f.conns))], meter: f.meter, lost: f.Failures.LostAnswers, dice: d,
	}
}

// submit submits the next job.
func (f *fleet) submit(ctx context.Context, l *line) error {
	n := int(f.submitted.Add(1))
	request := &tilthv1.SubmitJobRequest{RequestId: fmt.Sprintf("simulated-%s-%d", f.name, n), Spec: f.jobSpec(n, f.owners[n%len(f.owners)], l.dice)}
	client := tilthv1.NewJobServiceClient(l)
	var response *tilthv1.SubmitJobResponse
	err := agent.Report(ctx, f.log, "SubmitJob", func(ctx context.Context) (err error) {
		response, err = client.SubmitJob(ctx, request)
		return err
	})
	if err != nil {
		return fmt.Errorf("submit a job: %w", err)
	}
	f.ledger.job(response.GetJob().GetId())
	return nil
}

// recorded notes trials that the tracker at an address acknowledged.
func (f *fleet) recorded(job string, task *tilthv1.TaskSpec, trials []uint32, by net.Addr) error {
	n, err := taskNumber(task)
	if err != nil {
		return err
	}
	f.ledger.record(job, n, trials, by.String())
	return nil
}
