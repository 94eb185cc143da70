package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

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
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}
