package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// Default intervals of a keyring.
const (
	// refreshEvery is how often an issuer's keys are fetched again, so that withdrawn keys expire.
	refreshEvery = 10 * time.Minute
	// retryEvery is the retry interval after a failure.
	retryEvery = 30 * time.Second
	// requestEvery is the minimum interval between fetches caused by tokens with unknown keys, which anyone can make.
	requestEvery = 10 * time.Second
	// maxWait is how long a call waits for a fetch.
	maxWait = 3 * time.Second
)

// ErrKeysUnavailable is wrapped by the error for a token with an unknown key while the issuer's keys cannot be
// fetched. The token may be valid.
var ErrKeysUnavailable = errors.New("the issuer's keys cannot be read now")

// ErrKeysPending is wrapped by the error for a token with an unknown key while the issuer's keys are being fetched.
var ErrKeysPending = errors.New("the issuer's keys are being read")

// times are the intervals between fetches.
type times struct{ refresh, retry, ask time.Duration }

// keyring has the last known keys of an issuer.
type keyring struct {
	source    *source
	times     times
	log       *slog.Logger
	requested chan struct{} // receives when keys must be fetched at once

	mu      sync.Mutex
	keys    []key
	read    time.Time     // when keys were last fetched; zero = never
	failed  error         // error of the last attempt
	ended   time.Time     // end of the last attempt
	attempt chan struct{} // closed at the end of the attempt in progress or requested; nil = none
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
		case <-r.requested:
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
	if r.attempt == nil {
		r.attempt = make(chan struct{})
	}
	select {
	case <-r.requested: // this attempt also serves the request
	default:
	}
}

// note stores the result of an attempt, and returns the delay until the next one.
func (r *keyring) note(keys []key, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.ended = err, time.Now()
	close(r.attempt)
	r.attempt = nil
	if err != nil {
		r.log.Warn("the keys of the issuer cannot be read, going on with those that are known", "issuer", r.source.issuer,
			"known", len(r.keys), "error", err)
		return r.times.retry
	}
	if !slices.EqualFunc(keys, r.keys, func(a, b key) bool { return a.id == b.id && a.thumbprint == b.thumbprint }) {
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
		ctx, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		select {
		case <-coming:
		case <-ctx.Done():
		}
	}
	return r.known(id, a)
}

// findNow is like find but never waits: it returns ErrKeysPending if a fetch may return the key. After a failed
// attempt it returns the failure instead.
func (r *keyring) findNow(id string, a jose.SignatureAlgorithm) (*key, error) {
	k, coming, err := r.look(id, a)
	if k != nil || err != nil {
		return k, err
	}
	if coming != nil && !r.failing() {
		return nil, fmt.Errorf("the token's key is not known yet, and %w: try again in a moment", ErrKeysPending)
	}
	return r.known(id, a)
}

// failing reports whether the last attempt failed.
func (r *keyring) failing() bool {
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
	if r.attempt == nil && time.Since(r.ended) >= r.times.ask {
		r.attempt = make(chan struct{})
		r.requested <- struct{}{} // never blocks: a requested attempt stays in progress until it ends
	}
	return nil, r.attempt, nil
}

func (r *keyring) known(id string, a jose.SignatureAlgorithm) (*key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := choose(r.keys, id, a)
	switch {
	case k != nil || err != nil:
		return k, err
	case r.failed != nil || r.attempt != nil:
		return nil, fmt.Errorf("the token's key is not known, and %w: try again later", ErrKeysUnavailable)
	}
	return nil, fmt.Errorf("the token is signed with a key that %s does not have", r.source.issuer)
}

// has reports whether a key is still among the issuer's keys.
func (r *keyring) has(k *key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.keys, func(other key) bool { return other.id == k.id && other.thumbprint == k.thumbprint })
}

// readAt returns when keys were last fetched; zero = never.
func (r *keyring) readAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// algorithms are the accepted signature algorithms, all asymmetric.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// curves has the curve of each ECDSA algorithm.
var curves = map[jose.SignatureAlgorithm]elliptic.Curve{
	jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521(),
}

// Bounds on the keys of an issuer.
const (
	maxKeys                = 64
	maxKeyIDBytes          = 256
	minRSABits, maxRSABits = 2048, 8192
)

// key is a public key of the issuer.
type key struct {
	public any
	// id identifies the key at the issuer; several keys may have none.
	id string
	// algorithm is the only one allowed; empty = all that the key type supports.
	algorithm jose.SignatureAlgorithm
	// thumbprint is the thumbprint of the key (RFC 7638).
	thumbprint string
}

// parseKeys parses a key set. Keys that are not for signatures or are of unsupported types are skipped.
func parseKeys(text []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("key set: it has %d keys, want at most %d", len(set.Keys), maxKeys)
	}
	var keys []key
	for _, text := range set.Keys {
		if k, is := parseKey(text); is {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key set: none of its %d keys is for signatures that are taken (%s)", len(set.Keys), algorithmNames())
	}
	return keys, nil
}

func parseKey(text []byte) (key, bool) {
	var k jose.JSONWebKey
	if err := k.UnmarshalJSON(text); err != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" || len(k.KeyID) > maxKeyIDBytes {
		return key{}, false
	}
	print, err := k.Thumbprint(crypto.SHA256)
	made := key{public: k.Key, id: k.KeyID, algorithm: jose.SignatureAlgorithm(k.Algorithm), thumbprint: string(print)}
	return made, err == nil && made.usable()
}

// usable reports whether the key supports one of the algorithms.
func (k key) usable() bool {
	return slices.ContainsFunc(algorithms, func(a jose.SignatureAlgorithm) bool { return k.signs(a) })
}

// signs reports whether the key supports an algorithm.
func (k key) signs(a jose.SignatureAlgorithm) bool {
	if k.algorithm != "" && k.algorithm != a {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return (strings.HasPrefix(string(a), "RS") || strings.HasPrefix(string(a), "PS")) && bits >= minRSABits && bits <= maxRSABits
	case *ecdsa.PublicKey:
		return curves[a] != nil && public.Curve == curves[a]
	case ed25519.PublicKey:
		return a == jose.EdDSA
	}
	return false
}

var errAmbiguous = errors.New("the token does not say which of the issuer's keys it is signed with")

// choose returns the key named by a token's header, or the only possible one if the header names none.
func choose(keys []key, id string, a jose.SignatureAlgorithm) (chosen *key, err error) {
	for i := range keys {
		k := &keys[i]
		if id != "" && k.id != id || !k.signs(a) {
			continue
		}
		if id != "" {
			return k, nil
		}
		if chosen != nil {
			return nil, errAmbiguous
		}
		chosen = k
	}
	return chosen, nil
}

func algorithmNames() string {
	return humanize.Join(algorithms, ", ", func(a jose.SignatureAlgorithm) string { return string(a) })
}
