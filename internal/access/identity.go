package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/internal/humanize"
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

// Role is the function of an identity. No role includes another: an admin is not an agent.
type Role string

const (
	// ReadOnly reads jobs, agents, records and metrics.
	ReadOnly Role = "read-only"
	// Client also submits jobs and manages its own.
	Client Role = "client"
	// Agent joins as a tuner, builder or runner, and does leased work.
	Agent Role = "agent"
	// Admin manages the jobs of all clients, manages devices and imports records.
	Admin Role = "admin"
)

// Roles returns every role.
func Roles() []Role { return []Role{ReadOnly, Client, Agent, Admin} }

// ParseRole parses a role.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	names := humanize.Join(Roles(), ", ", func(r Role) string { return string(r) })
	return "", fmt.Errorf("role %q is not one of %s", text, names)
}
