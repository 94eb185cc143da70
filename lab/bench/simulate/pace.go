package simulate

import (
	"context"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// pace spaces out what many want to do, to so many a second.
type pace struct {
	rate float64 // 0 = without bound

	mu   sync.Mutex
	next time.Time
}

// mostBehind is how far the pace may fall behind the clock and still make up for it.
const mostBehind = time.Second

// wait returns when n more may be done.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if oldest := now.Add(-mostBehind); p.next.Before(oldest) {
		p.next = oldest
	}
	turn := p.next
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	p.mu.Unlock()
	return retry.Sleep(ctx, turn.Sub(now))
}
