package loadtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// line is one agent's view of a connection. It times calls and may drop answers. After cut, all calls fail.
type line struct {
	grpc.ClientConnInterface
	meter *meter
	lost  float64
	dice  *dice
	isCut atomic.Bool
}

var errCut = status.Error(codes.Unavailable, "the simulated agent has vanished")

// Invoke implements grpc.ClientConnInterface.
func (l *line) Invoke(ctx context.Context, method string, request, response any, opts ...grpc.CallOption) error {
	if l.isCut.Load() {
		return errCut
	}
	began := time.Now()
	l.meter.sends(request, began)
	err := l.ClientConnInterface.Invoke(ctx, method, request, response, opts...)
	switch {
	case err != nil:
		return err
	case l.isCut.Load():
		return errCut
	case l.dice.happens(l.lost):
		return status.Error(codes.Unavailable, "the simulated network lost the answer")
	}
	l.meter.received(request, response, began, time.Now())
	return nil
}

// NewStream implements grpc.ClientConnInterface.
func (l *line) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if l.isCut.Load() {
		return nil, errCut
	}
	return l.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

// cut makes the agent vanish without notice.
func (l *line) cut() { l.isCut.Store(true) }

// dice is one agent's random source. It is safe for concurrent use.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed, agent uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, agent))} }

// happens returns true with a probability.
func (d *dice) happens(probability float64) bool {
	if probability == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < probability
}

// around returns a time between half and twice the mean. Two thirds are shorter and one third longer.
func (d *dice) around(mean time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rng.IntN(3) == 0 {
		return mean + time.Duration(d.rng.Float64()*float64(mean))
	}
	return mean/2 + time.Duration(d.rng.Float64()*float64(mean)/2)
}

// exponential returns the waiting time until an event with a mean interval.
func (d *dice) exponential(mean time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rng.ExpFloat64() * float64(mean))
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}
