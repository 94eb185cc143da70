package oidctest

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

// Audience is that of the tokens that Claims makes.
const Audience = "tilth"

// Issuer issues tokens. Its methods may be called from many goroutines.
type Issuer struct {
	server *httptest.Server

	mu     sync.Mutex
	keys   []Key // the last signs
	answer http.HandlerFunc
	asked  int
}

// Key is one that tokens are signed with.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// New starts an issuer with one key, whose authority it writes to a file. The caller ends it with Close.
func New(authority string) (*Issuer, error) {
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

// Close ends the issuer; answers under way are cut off.
func (i *Issuer) Close() {
	i.server.CloseClientConnections()
	i.server.Close()
}

// URL is the issuer's, by which its tokens name it.
func (i *Issuer) URL() string { return i.server.URL }

// Rotate has tokens signed with a new key from now on. Those before it stay known.
func (i *Issuer) Rotate(id string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		i.Add(Key{ID: id, Algorithm: jose.ES256, Private: private})
	}
	return err
}

// Add has tokens signed with a key from now on.
func (i *Issuer) Add(k Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, k)
}

// Drop has the issuer give up a key.
func (i *Issuer) Drop(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = slices.DeleteFunc(i.keys, func(k Key) bool { return k.ID == id })
}

// Last is the key that signs.
func (i *Issuer) Last() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Answer has requests answered otherwise; nil = as they should be.
func (i *Issuer) Answer(by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = by
}

// Asked is how many requests there were.
func (i *Issuer) Asked() int {
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

// Serve answers a request as it should be, whatever Answer was told.
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

// Keys are the public halves of the issuer's keys.
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
	_ = json.NewEncoder(w).Encode(doc) // a client that is gone gets nothing
}

// Claims are those of a member of some groups, for an hour from now on.
func (i *Issuer) Claims(subject string, groups ...string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.URL(), "aud": Audience, "sub": subject, "groups": groups,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Sign makes a token of claims with the issuer's last key, and headers.
func (i *Issuer) Sign(claims any, headers map[jose.HeaderKey]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return i.Last().Sign(payload, headers)
}

// Sign makes a token of a payload, whatever that is.
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
