package loadtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// drainGrace is how long a drained agent may continue its current work.
	drainGrace = time.Second
	// livesToAbsence is the mean ratio of an agent's life to its absence after it.
	livesToAbsence = 10
)

// live runs an agent's lives in sequence until ctx ends.
func (f *fleet) live(ctx context.Context, spec *tilthv1.AgentSpec, n uint64, slots int, places chan struct{}, joined chan<- struct{}) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	first := sync.OnceFunc(func() {
		<-places
		joined <- struct{}{}
	})
	dice := newDice(f.Seed, n)
	for ctx.Err() == nil {
		l := f.line(n, dice)
		f.use(l)
		err := f.life(ctx, l, spec, slots, first)
		first() // do not wait for one that vanished before it joined
		f.forget(l)
		if err != nil {
			f.stop(err)
			return
		}
		_ = retry.Sleep(ctx, dice.exponential(f.Failures.MeanLife/livesToAbsence))
		f.lives.Add(1)
	}
}

func (f *fleet) use(l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines[l] = struct{}{}
}

func (f *fleet) forget(l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.lines, l)
}

// life runs one life of an agent. It calls joined once the agent has joined.
func (f *fleet) life(ctx context.Context, l *line, spec *tilthv1.AgentSpec, slots int, joined func()) error {
	life, end := context.WithCancel(ctx)
	defer end()
	if mean := f.Failures.MeanLife; mean > 0 {
		timer := time.AfterFunc(l.dice.exponential(mean), func() {
			if l.dice.happens(0.5) {
				l.cut()
			}
			end()
		})
		defer timer.Stop()
	}
	return agent.Run(life, agent.Config{
		Conn: &greeter{l, joined}, Spec: spec, Slots: slots, DrainGrace: drainGrace, Logger: f.log,
		Handler: agent.HandlerFunc(func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
			return f.handle(ctx, l, work)
		}),
	})
}

// greeter is a log line that signals that its agent has joined.
type greeter struct {
	*line
	joined func()
}

// Invoke implements grpc.ClientConnInterface.
func (g *greeter) Invoke(ctx context.Context, method string, request, response any, opts ...grpc.CallOption) error {
	err := g.line.Invoke(ctx, method, request, response, opts...)
	if _, isJoin := response.(*tilthv1.JoinResponse); isJoin && err == nil {
		g.joined()
	}
	return err
}

func (f *fleet) handle(ctx context.Context, l *line, work *tilthv1.LeaseWorkResponse) error {
	switch w := work.GetWork().(type) {
	case *tilthv1.LeaseWorkResponse_Search:
		return f.search(ctx, l, work.GetLease(), w.Search)
	case *tilthv1.LeaseWorkResponse_Build:
		return f.build(ctx, l, work.GetLease(), w.Build)
	case *tilthv1.LeaseWorkResponse_Measure:
		return f.measure(ctx, l, work.GetLease(), w.Measure)
	}
	return fmt.Errorf("lease of %q has no kind of work", work.GetLease().GetSubject())
}
