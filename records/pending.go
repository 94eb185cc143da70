package records

import "context"

// Pending is a commit under way.
type Pending struct {
	done chan struct{}
	err  error
}

// NewPending is for the store that makes the commit.
func NewPending() *Pending { return &Pending{done: make(chan struct{})} }

// Settle tells those who wait what came of the commit; nil = it is stored. The store calls it, once.
func (p *Pending) Settle(err error) {
	p.err = err
	close(p.done)
}

// Wait returns when the commit is stored, has failed, or ctx ends. In the last case it may still be stored.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
