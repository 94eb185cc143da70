package records

import "context"

// Pending is a commit in progress.
type Pending struct {
	done chan struct{}
	err  error
}

// NewPending returns a commit in progress, for implementations of Store.
func NewPending() *Pending { return &Pending{done: make(chan struct{})} }

// Settle completes the commit with its error; nil means stored. The store must call it exactly once.
func (p *Pending) Settle(err error) {
	p.err = err
	close(p.done)
}

// Wait waits until the commit is stored or has failed, or until ctx ends. In the last case it may still be stored.
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
