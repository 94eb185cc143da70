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

// Times of a keyring, unless its owner sets others.
const (
	// refreshEvery is how often an issuer's keys are read again, so that a key that it gives up ends.
	refreshEvery = 10 * time.Minute
	// retryEvery is how often that is tried while it fails.
	retryEvery = 30 * time.Second
	// askEvery is how often tokens with keys that are not known have the keys read: anybody can make such tokens.
	askEvery = 10 * time.Second
	// waitMost is how long a call waits for keys that are being read.
	waitMost = 3 * time.Second
)

// ErrKeysUnavailable is wrapped by the error about a token whose key is not known while the issuer's keys cannot be
// read. The token may be good.
var ErrKeysUnavailable = errors.New("the issuer's keys cannot be read now")

// ErrKeysComing is wrapped by the error about a token whose key is not known while the issuer's keys are being read.
var ErrKeysComing = errors.New("the issuer's keys are being read")

// times are how often keys are read.
type times struct{ refresh, retry, ask time.Duration }

// keyring has the keys of an issuer as it last gave them.
type keyring struct {
	source *source
	times  times
	log    *slog.Logger
	asked  chan struct{} // has one when keys are to be read at once

	mu     sync.Mutex
	keys   []key
	read   time.Time     // when keys was last read; zero = never
	failed error         // of the last attempt
	ended  time.Time     // when that was
	under  chan struct{} // closed when the attempt ends that is under way or asked for; nil = there is none
}

func newKeyring(from *source, t times, log *slog.Logger) *keyring {
	return &keyring{source: from, times: t, log: log, asked: make(chan struct{}, 1), under: make(chan struct{})}
}

// run reads the keys at once, and now and then, until ctx ends.
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

// begin notes that an attempt is under way.
func (r *keyring) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under == nil {
		r.under = make(chan struct{})
	}
	select {
	case <-r.asked: // by whom this attempt is for, too
	default:
	}
}

// note keeps what an attempt has brought, and says after how long there is to be another.
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

// find returns the key that a token is signed with. It waits for a while where that may be one that is not known yet.
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

// findNow is find that waits for nothing: ErrKeysComing where the key may be one that is not known yet. After an
// attempt that failed nobody is told to wait for the next one.
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

// away says whether the last attempt failed.
func (r *keyring) away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// look returns a key if it is known; otherwise what is closed when an attempt ends that may bring it, if one may.
func (r *keyring) look(id string, a jose.SignatureAlgorithm) (k *key, coming <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, err = choose(r.keys, id, a); k != nil || err != nil {
		return k, nil, err
	}
	if r.under == nil && time.Since(r.ended) >= r.times.ask {
		r.under = make(chan struct{})
		r.asked <- struct{}{} // it is empty: an attempt that is asked for is under way until it ends
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

// has says whether a key is still one of the issuer's.
func (r *keyring) has(k *key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.keys, func(other key) bool { return other.id == k.id && other.print == k.print })
}

// readAt is when keys were last read; zero = never.
func (r *keyring) readAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}
