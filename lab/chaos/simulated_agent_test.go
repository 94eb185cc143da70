package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Properties of all agents and jobs in a campaign.
const (
	toolchain   = "clang-19"
	deviceClass = "pretended"
	algorithm   = "pretended"
	fingerprint = "pretended x86-64 1 thread clang-19"
)

// slots is the number of concurrent leases of an agent.
const slots = 2

// simulatedAgentConfig configures one life of an agent with simulated work.
type simulatedAgentConfig struct {
	// Kind is tuner, builder or runner.
	Kind string
	// Name is the agent's name in all its lives. Life is unique over all agents.
	Name string
	Life int
	// Tracker is the address of the tracker or a proxy.
	Tracker string
	// Dir keeps the journal and scratch files.
	Dir string
	// Skew is how far the agent's wall clock is ahead of the machine's.
	Skew time.Duration
	Log  *slog.Logger
}

// simulatedAgent is a life of an agent with simulated work.
type simulatedAgent struct {
	simulatedAgentConfig
	conn   *journalingConn
	policy retry.Policy
	cache  *artifact.Store
	done   atomic.Int64 // number of simulated outcomes, to make them unique
}

// runSimulatedAgent runs an agent until ctx ends.
func runSimulatedAgent(ctx context.Context, cfg simulatedAgentConfig) error {
	conn, err := dial(cfg.Tracker)
	if err != nil {
		return err
	}
	j, err := openJournal(filepath.Join(cfg.Dir, cfg.Name+".journal"), cfg.Name, cfg.Life)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	p := &simulatedAgent{simulatedAgentConfig: cfg, conn: &journalingConn{conn, j}, policy: impatient}
	spec, err := p.spec()
	if err == nil {
		p.cache, err = artifact.Open(artifact.Options{Dir: filepath.Join(cfg.Dir, cfg.Name+".cache"), Logger: cfg.Log})
	}
	if err == nil {
		err = agent.Run(ctx, agent.Config{
			Conn: p.conn, Spec: spec, Handler: agent.HandlerFunc(p.handle), Slots: slots, Logger: cfg.Log,
			LeaseWait: 2 * time.Second, DrainGrace: time.Second, FirstRetry: impatient.First, MaxRetry: impatient.Max,
		})
	}
	return errors.Join(err, conn.Close(), j.close())
}

// impatient is the retry policy for a farm whose faults last about a second.
var impatient = retry.Policy{First: 20 * time.Millisecond, Max: 200 * time.Millisecond, Try: 2 * time.Second}

// dial connects like a real agent, but retries sooner.
func dial(addr string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return agent.Dial(addr, append(options, grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: time.Second,
	}))...)
}

func (p *simulatedAgent) spec() (*tilthv1.AgentSpec, error) {
	spec := &tilthv1.AgentSpec{Name: p.Name, Host: p.Name, Version: "pretended"}
	switch p.Kind {
	case "tuner":
		spec.Kind, spec.Tuners = tilthv1.AgentKind_AGENT_KIND_TUNER, []string{algorithm}
	case "builder":
		spec.Kind, spec.Toolchains = tilthv1.AgentKind_AGENT_KIND_BUILDER, []string{toolchain}
	case "runner":
		spec.Kind = tilthv1.AgentKind_AGENT_KIND_RUNNER
		spec.DeviceClasses = []*tilthv1.DeviceClass{{Name: deviceClass, Descriptor_: []byte("{}")}}
	default:
		return nil, fmt.Errorf("kind %q: is not tuner, builder or runner", p.Kind)
	}
	return spec, nil
}

func (p *simulatedAgent) handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	switch w := work.GetWork().(type) {
	case *tilthv1.LeaseWorkResponse_Search:
		return p.search(ctx, work.GetLease(), w.Search.GetJob())
	case *tilthv1.LeaseWorkResponse_Build:
		return p.build(ctx, work.GetLease(), w.Build)
	case *tilthv1.LeaseWorkResponse_Measure:
		return p.measure(ctx, work.GetLease(), w.Measure)
	}
	return fmt.Errorf("lease of %q has no kind of work", work.GetLease().GetSubject())
}

// report repeats a call until it is answered.
func (p *simulatedAgent) report(ctx context.Context, what string, call func(context.Context) error) error {
	return retry.Do(ctx, p.Log, p.policy, what, call)
}

// upload uploads a batch's object to the tracker. Its content is derived from the batch.
func (p *simulatedAgent) upload(ctx context.Context, batch string) (*tilthv1.ArtifactRef, error) {
	path := filepath.Join(p.Dir, p.Name+"."+batch+".object")
	if err := os.WriteFile(path, bytes.Repeat([]byte("object of "+batch+"\n"), 2000), 0o644); err != nil {
		return nil, err
	}
	ref, err := artifact.NewClient(p.conn, nil, p.Log).Upload(ctx, wire.RoleCandidates, path)
	return ref, errors.Join(err, os.Remove(path))
}

// fetch downloads a batch's objects like a runner.
func (p *simulatedAgent) fetch(ctx context.Context, refs []*tilthv1.ArtifactRef) error {
	for _, ref := range refs {
		_, release, err := artifact.NewClient(p.conn, p.cache, p.Log).Download(ctx, ref)
		if err != nil {
			return err
		}
		release()
	}
	return nil
}

// mark returns a value that makes an outcome unique over all lives and agents.
func (p *simulatedAgent) mark() int64 { return int64(p.Life)*1_000_000 + p.done.Add(1) }
