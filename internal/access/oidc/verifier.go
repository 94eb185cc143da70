package oidc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/tilth-dev/tilth/internal/access"
)

// skew is the tolerated difference between the clocks of the issuer and this machine.
const skew = time.Minute

// maxRemembered bounds the cache of verified tokens.
const maxRemembered = 4096

// Token is a verified token.
type Token struct {
	access.Identity
	// Expires is when the token ceases to be accepted.
	Expires time.Time
	key     *key
}

// Verifier verifies tokens of an issuer. Its methods may be called concurrently.
type Verifier struct {
	cfg    Config
	keys   *keyring
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	remembered map[[sha256.Size]byte]*Token
}

// Options are optional settings. Zero durations mean the defaults.
type Options struct {
	// Refresh is how often keys are fetched again, Retry the interval after a failure, and Ask the minimum interval
	// between fetches caused by unknown keys.
	Refresh, Retry, Ask time.Duration
	// Logger logs changes of the issuer's keys; may be nil.
	Logger *slog.Logger
}

// Open starts fetching the issuer's keys. The issuer may be unreachable; the configuration must be valid. The caller
// must Close the verifier.
func Open(cfg Config, o Options) (*Verifier, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	from, err := newSource(cfg, log)
	if err != nil {
		return nil, err
	}
	often := times{refresh: cmp.Or(o.Refresh, refreshEvery), retry: cmp.Or(o.Retry, retryEvery), ask: cmp.Or(o.Ask, requestEvery)}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Verifier{
		cfg: cfg, cancel: cancel, done: make(chan struct{}),
		keys: &keyring{
			source: from, times: often, log: log, requested: make(chan struct{}, 1), attempt: make(chan struct{}),
		},
		remembered: map[[sha256.Size]byte]*Token{},
	}
	go func() {
		defer close(v.done)
		v.keys.run(ctx)
	}()
	return v, nil
}

// Close stops fetching keys.
func (v *Verifier) Close() error {
	v.cancel()
	<-v.done
	return nil
}

// Issuer returns the issuer's URL.
func (v *Verifier) Issuer() string { return v.cfg.Issuer }

// KeysRead returns when the issuer's keys were last fetched; zero = never.
func (v *Verifier) KeysRead() time.Time { return v.keys.readAt() }

// Verify verifies a token and returns its owner. Errors contain nothing of the token, except names in it after the
// signature was verified. They wrap ErrKeysUnavailable while the key cannot be fetched, and ErrNoRole if no grant
// matches. Verify may wait a few seconds for keys.
func (v *Verifier) Verify(ctx context.Context, text string, now time.Time) (*Token, error) {
	return v.judge(text, now, func(id string, a jose.SignatureAlgorithm) (*key, error) { return v.keys.find(ctx, id, a) })
}

// VerifyWithoutWaiting is like Verify but never waits: it returns an error that wraps ErrKeysPending instead.
func (v *Verifier) VerifyWithoutWaiting(text string, now time.Time) (*Token, error) {
	return v.judge(text, now, v.keys.findNow)
}

// finder finds the key that a token is signed with.
type finder func(id string, a jose.SignatureAlgorithm) (*key, error)

func (v *Verifier) judge(text string, now time.Time, find finder) (*Token, error) {
	if len(text) > access.MaxTokenBytes {
		return nil, fmt.Errorf("the token has %d bytes: want at most %d", len(text), access.MaxTokenBytes)
	}
	id := sha256.Sum256([]byte(text))
	if t := v.recall(id); t != nil {
		return t, v.Valid(t, now)
	}
	t, err := v.verify(text, now, find)
	if err != nil {
		return nil, err
	}
	v.remember(id, t)
	return t, nil
}

// IsCached reports whether the token was verified before, so that its signature need not be checked again.
func (v *Verifier) IsCached(text string) bool { return v.recall(sha256.Sum256([]byte(text))) != nil }

// Valid returns an error if a verified token is no longer valid.
func (v *Verifier) Valid(t *Token, now time.Time) error {
	if !now.Before(t.Expires) {
		return v.expired()
	}
	if !v.keys.has(t.key) {
		return fmt.Errorf("the token is signed with a key that %s has given up: get another from it", v.cfg.Issuer)
	}
	return nil
}

func (v *Verifier) expired() error {
	return fmt.Errorf("the token has expired: get another from %s", v.cfg.Issuer)
}

func (v *Verifier) verify(text string, now time.Time, find finder) (*Token, error) {
	signed, err := jwt.ParseSigned(text, algorithms)
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return nil, fmt.Errorf("the token is signed by an algorithm that is not taken: want %s", algorithmNames())
	}
	if err != nil {
		return nil, v.malformed()
	}
	header := signed.Headers[0]
	if !isJWT(header) {
		return nil, errors.New("the token is of a type that does not prove who calls: want an ID or access token (JWT, at+jwt)")
	}
	k, err := find(header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return nil, err
	}
	var known jwt.Claims
	var claims map[string]any
	switch err := signed.Claims(k.public, &known, &claims); {
	case errors.Is(err, jose.ErrCryptoFailure):
		return nil, fmt.Errorf("the token's signature is wrong: get another from %s", v.cfg.Issuer)
	case err != nil:
		return nil, v.malformed()
	}
	if err := v.check(known, now); err != nil {
		return nil, err
	}
	who, err := v.cfg.identity(claims)
	if err != nil {
		return nil, err
	}
	return &Token{Identity: who, Expires: known.Expiry.Time().Add(skew), key: k}, nil
}

func (v *Verifier) malformed() error {
	return fmt.Errorf("the token is neither one of this farm's nor a JWT signed by %s", v.cfg.Issuer)
}

// isJWT reports whether a token may identify a caller: other kinds, such as logout tokens, carry the same signatures
// (RFC 8725, section 3.11).
func isJWT(h jose.Header) bool {
	value, is := h.ExtraHeaders[jose.HeaderType]
	if !is {
		return true
	}
	kind, _ := value.(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return kind == "jwt" || kind == "at+jwt"
}

// check checks the validity period and the audience of a token.
func (v *Verifier) check(c jwt.Claims, now time.Time) error {
	if c.Expiry == nil {
		return errors.New("the token never expires: want one with the claim exp")
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: v.cfg.Issuer, AnyAudience: jwt.Audience{v.cfg.Audience}, Time: now}, skew)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return fmt.Errorf("the token is of another issuer than %s", v.cfg.Issuer)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return fmt.Errorf("the token is for another audience than %s: get one for that from %s", v.cfg.Audience, v.cfg.Issuer)
	case errors.Is(err, jwt.ErrExpired) || !now.Before(c.Expiry.Time().Add(skew)):
		return v.expired()
	case err != nil:
		return fmt.Errorf("the token is not valid yet: check the clocks of this machine and of %s", v.cfg.Issuer)
	}
	return nil
}

func (v *Verifier) recall(id [sha256.Size]byte) *Token {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.remembered[id]
}

// remember caches a verified token, and evicts others if there are too many.
func (v *Verifier) remember(id [sha256.Size]byte, t *Token) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.remembered) >= maxRemembered {
		clear(v.remembered)
	}
	v.remembered[id] = t
}

// maxSubjectBytes bounds a subject (OpenID Connect Core 1.0, section 2).
const maxSubjectBytes = 255

// ErrNoRole is wrapped by the error for a valid token whose groups have no role.
var ErrNoRole = errors.New("is in no group that has a role here")

// identity returns the owner of a token with the given claims.
func (c Config) identity(claims map[string]any) (access.Identity, error) {
	subject, _ := claims["sub"].(string)
	if subject == "" || len(subject) > maxSubjectBytes || strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r > '~' }) {
		return access.Identity{}, fmt.Errorf("the token's subject is not 1 to %d printable ASCII characters", maxSubjectBytes)
	}
	name, err := c.owner(claims)
	if err != nil {
		return access.Identity{}, err
	}
	role, is := c.role(claims)
	if !is {
		return access.Identity{}, fmt.Errorf("%s %w: ask an admin to give one of the groups of the claim %s a role", name, ErrNoRole, c.RoleClaim)
	}
	return access.Identity{Name: name, Role: role, Proof: fmt.Sprintf("subject %s of %s", subject, c.Issuer)}, nil
}

// owner returns the caller's name.
func (c Config) owner(claims map[string]any) (string, error) {
	value, is := find(claims, c.OwnerClaim).(string)
	if !is || value == "" {
		return "", fmt.Errorf("the token lacks the claim %s, which names the caller: ask the issuer for it, or an admin to name another", c.OwnerClaim)
	}
	// Some issuers accept unverified addresses.
	if verified, _ := claims["email_verified"].(bool); c.OwnerClaim == "email" && !verified {
		return "", errors.New("the issuer has not verified the token's email (email_verified): verify it, or ask an admin to name another claim")
	}
	name := c.OwnerPrefix + value
	if len(name) > access.MaxNameBytes {
		return "", fmt.Errorf("claim %s: a name has at most %d bytes: ask an admin to name another claim", c.OwnerClaim, access.MaxNameBytes)
	}
	if err := access.CheckName(name); err != nil {
		return "", fmt.Errorf("claim %s: %w", c.OwnerClaim, err)
	}
	return name, nil
}

// role returns the role of the first grant that matches one of the caller's groups.
func (c Config) role(claims map[string]any) (access.Role, bool) {
	in := map[string]bool{}
	switch groups := find(claims, c.RoleClaim).(type) {
	case string:
		in[groups] = true
	case []any:
		for _, group := range groups {
			if name, is := group.(string); is {
				in[name] = true
			}
		}
	}
	for _, g := range c.Grants {
		if in[g.Group] {
			return g.Role, true
		}
	}
	return "", false
}

// find returns a claim by its name or else by a dotted path: realm_access.roles is roles within realm_access.
func find(claims map[string]any, name string) any {
	if value, is := claims[name]; is {
		return value
	}
	outer, inner, is := strings.Cut(name, ".")
	if !is {
		return nil
	}
	within, _ := claims[outer].(map[string]any)
	return find(within, inner)
}
