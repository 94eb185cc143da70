package access

import (
	"fmt"
	"slices"
	"strings"
)

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
	var names []string
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return "", fmt.Errorf("role %q is not one of %s", text, strings.Join(names, ", "))
}
