package loadtest

import (
	"context"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// pace is a rate limiter.
type pace struct {
	rate float64 // 0 = unlimited

	mu   sync.Mutex
	next time.Time
}

// maxBehind bounds how far the pace may fall behind the clock and still catch up.
const maxBehind = time.Second

// wait blocks until n more events are allowed.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if oldest := now.Add(-maxBehind); p.next.Before(oldest) {
		p.next = oldest
	}
	turn := p.next
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	p.mu.Unlock()
	return retry.Sleep(ctx, turn.Sub(now))
}
