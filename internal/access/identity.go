package access

import (
	"context"
	"fmt"
)

// MaxNameBytes bounds the name of an identity.
const MaxNameBytes = 128

// MaxTokenBytes bounds a token of any kind. Those of issuers list their owner's groups.
const MaxTokenBytes = 8 << 10

// Identity is who calls.
type Identity struct {
	// Name is unique among people and machines alike; jobs and sessions belong to it.
	Name string
	Role Role
	// Proof tells how the name was proved, for the audit log: "token ID", "certificate SERIAL" or
	// "subject SUBJECT of ISSUER".
	Proof string
}

// CheckName says what is wrong with the name of an identity: it is written into logs and shown in listings.
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

// With returns a context that carries an identity.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// From returns the identity that a call was made with; false on a tracker that asks nobody who they are.
func From(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}
