package accesstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the audience of the claims made by Claims.
const Audience = "tilth"

// Issuer issues tokens. Its methods may be called concurrently.
type Issuer struct {
	server *httptest.Server

	mu     sync.Mutex
	keys   []Key // the last one signs
	answer http.HandlerFunc
	asked  int
}

// Key is a signing key.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewIssuer starts an issuer with one key, and writes its certificate authority to a file. The caller must Close it.
func NewIssuer(authority string) (*Issuer, error) {
	i := &Issuer{}
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(i.serve))
	i.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.server.StartTLS()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	if err := errors.Join(i.Rotate("first"), os.WriteFile(authority, text, 0o600)); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Close stops the issuer and aborts responses in progress.
func (i *Issuer) Close() {
	i.server.CloseClientConnections()
	i.server.Close()
}

// URL returns the issuer's URL, as in its tokens.
func (i *Issuer) URL() string { return i.server.URL }

// Rotate signs tokens with a new key from now on. Earlier keys stay published.
func (i *Issuer) Rotate(id string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		i.Add(Key{ID: id, Algorithm: jose.ES256, Private: private})
	}
	return err
}

// Add signs tokens with the given key from now on.
func (i *Issuer) Add(k Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, k)
}

// Drop withdraws a key.
func (i *Issuer) Drop(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = slices.DeleteFunc(i.keys, func(k Key) bool { return k.ID == id })
}

// Last returns the signing key.
func (i *Issuer) Last() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// SetHandler sets a handler for all requests; nil = the default behaviour.
func (i *Issuer) SetHandler(by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = by
}

// Requests returns the number of requests.
func (i *Issuer) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked++
	by := i.answer
	i.mu.Unlock()
	if by != nil {
		by(w, r)
		return
	}
	i.Serve(w, r)
}

// Serve answers a request in the default way, whatever was set by Answer.
func (i *Issuer) Serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		write(w, map[string]string{"issuer": i.URL(), "jwks_uri": i.URL() + "/keys"})
	case "/keys":
		write(w, i.Keys())
	default:
		http.NotFound(w, r)
	}
}

// Keys returns the public keys of the issuer.
func (i *Issuer) Keys() jose.JSONWebKeySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"})
	}
	return set
}

func write(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc) // the client may be gone
}

// Claims returns the claims of a member of groups, valid for an hour.
func (i *Issuer) Claims(subject string, groups ...string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.URL(), "aud": Audience, "sub": subject, "groups": groups,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Sign returns a token with the given claims and headers, signed with the issuer's last key.
func (i *Issuer) Sign(claims any, headers map[jose.HeaderKey]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return i.Last().Sign(payload, headers)
}

// Sign returns a token with an arbitrary payload.
func (k Key) Sign(payload []byte, headers map[jose.HeaderKey]any) (string, error) {
	o := (&jose.SignerOptions{}).WithType("JWT")
	for name, value := range headers {
		o = o.WithHeader(name, value)
	}
	with := jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}
	signer, err := jose.NewSigner(with, o)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
