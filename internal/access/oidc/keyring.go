package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Default intervals of a keyring.
const (
	// refreshEvery is how often an issuer's keys are fetched again, so that withdrawn keys expire.
	refreshEvery = 10 * time.Minute
	// retryEvery is the retry interval after a failure.
	retryEvery = 30 * time.Second
	// askEvery is the minimum interval between fetches caused by tokens with unknown keys: anyone can make such
	// tokens.
	askEvery = 10 * time.Second
	// waitMost is how long a call waits for a fetch.
	waitMost = 3 * time.Second
)

// ErrKeysUnavailable is wrapped by the error for a token with an unknown key while the issuer's keys cannot be
// fetched. The token may be valid.
var ErrKeysUnavailable = errors.New("the issuer's keys cannot be read now")

// ErrKeysComing is wrapped by the error for a token with an unknown key while the issuer's keys are being fetched.
var ErrKeysComing = errors.New("the issuer's keys are being read")

// times are the intervals between fetches.
type times struct{ refresh, retry, ask time.Duration }

// keyring has the last known keys of an issuer.
type keyring struct {
	source *source
	times  times
	log    *slog.Logger
	asked  chan struct{} // receives when keys must be fetched at once

	mu     sync.Mutex
	keys   []key
	read   time.Time     // when keys were last fetched; zero = never
	failed error         // error of the last attempt
	ended  time.Time     // end of the last attempt
	under  chan struct{} // closed at the end of the attempt in progress or requested; nil = none
}

func newKeyring(from *source, t times, log *slog.Logger) *keyring {
	return &keyring{source: from, times: t, log: log, asked: make(chan struct{}, 1), under: make(chan struct{})}
}

// run fetches the keys at once, and then periodically, until ctx ends.
func (r *keyring) run(ctx context.Context) {
	for {
		keys, err := r.source.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(r.note(keys, err))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.asked:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		r.begin()
	}
}

// begin records the start of an attempt.
func (r *keyring) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under == nil {
		r.under = make(chan struct{})
	}
	select {
	case <-r.asked: // this attempt also serves the request
	default:
	}
}

// note stores the result of an attempt, and returns the delay until the next one.
func (r *keyring) note(keys []key, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.ended = err, time.Now()
	close(r.under)
	r.under = nil
	if err != nil {
		r.log.Warn("the keys of the issuer cannot be read, going on with those that are known", "issuer", r.source.issuer,
			"known", len(r.keys), "error", err)
		return r.times.retry
	}
	if !slices.EqualFunc(keys, r.keys, func(a, b key) bool { return a.id == b.id && a.print == b.print }) {
		r.log.Info("keys of the issuer read", "issuer", r.source.issuer, "keys", len(keys))
	}
	r.keys, r.read = keys, r.ended
	return r.times.refresh
}

// find returns the key that a token is signed with. It waits a while for a fetch that may return the key.
func (r *keyring) find(ctx context.Context, id string, a jose.SignatureAlgorithm) (*key, error) {
	k, coming, err := r.look(id, a)
	if k != nil || err != nil {
		return k, err
	}
	if coming != nil {
		ctx, cancel := context.WithTimeout(ctx, waitMost)
		defer cancel()
		select {
		case <-coming:
		case <-ctx.Done():
		}
	}
	return r.known(id, a)
}

// findNow is like find but never waits: it returns ErrKeysComing if a fetch may return the key. After a failed attempt
// it returns the failure instead.
func (r *keyring) findNow(id string, a jose.SignatureAlgorithm) (*key, error) {
	k, coming, err := r.look(id, a)
	if k != nil || err != nil {
		return k, err
	}
	if coming != nil && !r.away() {
		return nil, fmt.Errorf("the token's key is not known yet, and %w: try again in a moment", ErrKeysComing)
	}
	return r.known(id, a)
}

// away reports whether the last attempt failed.
func (r *keyring) away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// look returns a known key. Otherwise coming is closed at the end of the attempt that may return the key; nil = none
// may.
func (r *keyring) look(id string, a jose.SignatureAlgorithm) (k *key, coming <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, err = choose(r.keys, id, a); k != nil || err != nil {
		return k, nil, err
	}
	if r.under == nil && time.Since(r.ended) >= r.times.ask {
		r.under = make(chan struct{})
		r.asked <- struct{}{} // never blocks: a requested attempt stays in progress until it ends
	}
	return nil, r.under, nil
}

func (r *keyring) known(id string, a jose.SignatureAlgorithm) (*key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := choose(r.keys, id, a)
	switch {
	case k != nil || err != nil:
		return k, err
	case r.failed != nil || r.under != nil:
		return nil, fmt.Errorf("the token's key is not known, and %w: try again later", ErrKeysUnavailable)
	}
	return nil, fmt.Errorf("the token is signed with a key that %s does not have", r.source.issuer)
}

// has reports whether a key is still among the issuer's keys.
func (r *keyring) has(k *key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.keys, func(other key) bool { return other.id == k.id && other.print == k.print })
}

// readAt returns when keys were last fetched; zero = never.
func (r *keyring) readAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}
