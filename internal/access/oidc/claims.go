package oidc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/access"
)

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
