package oidc

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// Bounds on requests to an issuer and on its responses.
const (
	fetchTimeout     = 10 * time.Second
	maxDocumentBytes = 64 << 10
	maxKeySetBytes   = 256 << 10
	maxHeaderBytes   = 16 << 10
)

// discoveryPath is appended to the issuer's URL (OpenID Connect Discovery 1.0, section 4).
const discoveryPath = "/.well-known/openid-configuration"

// source fetches the issuer's keys.
type source struct {
	issuer string
	side   *filesystem.Reloaded[*tls.Config] // TLS configuration
}

func newSource(cfg Config, log *slog.Logger) (*source, error) {
	var files []string
	if cfg.CA != "" {
		files = append(files, cfg.CA)
	}
	side, err := filesystem.Reload(log, certs.ClientConfig{CA: cmp.Or(cfg.CA, certs.SystemRoots)}.Config, files...)
	return &source{issuer: cfg.Issuer, side: side}, err
}

// fetch fetches the issuer's keys.
func (s *source) fetch(ctx context.Context) ([]key, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	client := s.client()
	text, err := get(ctx, client, strings.TrimSuffix(s.issuer, "/")+discoveryPath, maxDocumentBytes)
	if err != nil {
		return nil, err
	}
	at, err := parseDocument(text, s.issuer)
	if err != nil {
		return nil, err
	}
	if text, err = get(ctx, client, at, maxKeySetBytes); err != nil {
		return nil, err
	}
	return parseKeys(text)
}

// client returns an HTTP client for one fetch, with the current authorities. It does not follow redirects.
func (s *source) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.side.Get().Clone(), DisableKeepAlives: true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get reads a document of at most limit bytes.
func get(ctx context.Context, client *http.Client, url string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: the answer is %d %s", url, response.StatusCode, http.StatusText(response.StatusCode))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("get %s: the answer has more than %d bytes", url, limit)
	}
	return text, nil
}

// parseDocument returns the URL of the issuer's keys from its discovery document.
func parseDocument(text []byte, issuer string) (keysURL string, err error) {
	var doc struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", fmt.Errorf("discovery document: %w", err)
	}
	if doc.Issuer != issuer {
		return "", fmt.Errorf("discovery document: it is of issuer %.256q, want %q: give the issuer's URL exactly as its document has it", doc.Issuer, issuer)
	}
	if _, err := checkURL(doc.Keys); err != nil {
		return "", fmt.Errorf("discovery document: jwks_uri %.256q: %w", doc.Keys, err)
	}
	return doc.Keys, nil
}

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
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.note(keys, err)):
		case <-r.requested:
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
	return made, err == nil && slices.ContainsFunc(algorithms, made.signs)
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
