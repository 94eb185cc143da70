package main

import (
	"io"
	"sync"
)

// relay passes writes to the current owner of the terminal, so that log lines do not break a live display.
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

// mute drops further writes, because the services of a failed or stopping farm log errors about each other.
func (r *relay) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = true
}
