package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what an identity is for. None contains another: an admin is no agent.
type Role string

const (
	// ReadOnly looks at jobs, agents, records and metrics.
	ReadOnly Role = "read-only"
	// Client submits jobs too, and looks after its own.
	Client Role = "client"
	// Agent joins as a tuner, builder or runner, and does leased work.
	Agent Role = "agent"
	// Admin does what clients may for everybody's jobs, looks after devices and imports records.
	Admin Role = "admin"
)

// Roles returns every role.
func Roles() []Role { return []Role{ReadOnly, Client, Agent, Admin} }

// ParseRole reads a role.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	var names []string
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return "", fmt.Errorf("role %q is not one of %s", text, strings.Join(names, ", "))
}
