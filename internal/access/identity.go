package access

import (
	"context"
	"fmt"
)

// MaxNameBytes bounds the name of an identity.
const MaxNameBytes = 128

// MaxTokenBytes bounds a token of any kind. Issuers list the owner's groups in their tokens.
const MaxTokenBytes = 8 << 10

// Identity is an authenticated caller.
type Identity struct {
	// Name is unique among people and machines; it owns jobs and sessions.
	Name string
	Role Role
	// Proof describes the credential, for the audit log: "token ID", "certificate SERIAL" or "subject SUBJECT of
	// ISSUER".
	Proof string
}

// CheckName checks the name of an identity, which appears in logs and listings.
func CheckName(name string) error {
	if name == "" || len(name) > MaxNameBytes {
		return fmt.Errorf("name %q has %d bytes: want 1 to %d", name, len(name), MaxNameBytes)
	}
	for _, c := range name {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("name %q: want printable ASCII without blanks", name)
		}
	}
	return nil
}

type identityKey struct{}

// With returns a context that carries id.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// From returns the identity of the caller; false on an open tracker.
func From(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}
