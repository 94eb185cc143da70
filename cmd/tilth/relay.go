package main

import (
	"io"
	"sync"
)

// relay passes writes on to whoever owns the terminal at the time, so that log lines do not cut through a live display.
type relay struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	return to.Write(p)
}

func (r *relay) set(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}
