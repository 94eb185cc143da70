package main

import (
	"io"
	"sync"
)

// relay passes writes on to whoever owns the terminal at the time, so that log lines do not cut through a live
// display.
type relay struct {
	mu    sync.Mutex
	to    io.Writer
	muted bool
}

// Write implements io.Writer.
func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	to := r.to
	if r.muted {
		to = io.Discard
	}
	r.mu.Unlock()
	return to.Write(p)
}

func (r *relay) set(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// mute drops what is written from now on: the services of a farm that has failed, or is asked to stop, miss one
// another.
func (r *relay) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = true
}
