package oidc

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/access"
)

// Config defines the accepted issuer and the required claims.
type Config struct {
	// Issuer is the issuer's URL, exactly as in its tokens.
	Issuer string
	// Audience is the required audience: usually the client ID of this farm at the issuer.
	Audience string
	// OwnerClaim is the claim with the caller's name, OwnerPrefix a prefix added to that name.
	OwnerClaim, OwnerPrefix string
	// RoleClaim is the claim with the caller's groups, a string or a list of strings.
	RoleClaim string
	// Grants give roles to groups. The first that matches one of the caller's groups applies; a caller without a match
	// is refused.
	Grants []Grant
	// CA is a file with the authorities of the issuer's certificate; empty = the system's.
	CA string
}

// Grant gives a role to the members of a group.
type Grant struct {
	Group string
	Role  access.Role
}

// Default claims.
const (
	defaultOwnerClaim = "sub"
	defaultRoleClaim  = "groups"
)

// maxGrants bounds the number of grants.
const maxGrants = 1024

// settings are the fields of Config that Parse sets by name.
var settings = map[string]func(*Config) *string{
	"issuer":       func(c *Config) *string { return &c.Issuer },
	"audience":     func(c *Config) *string { return &c.Audience },
	"owner-claim":  func(c *Config) *string { return &c.OwnerClaim },
	"owner-prefix": func(c *Config) *string { return &c.OwnerPrefix },
	"role-claim":   func(c *Config) *string { return &c.RoleClaim },
	"ca":           func(c *Config) *string { return &c.CA },
}

// Parse parses named settings, and grants of the form GROUP=ROLE.
func Parse(named map[string]string, grants []string) (Config, error) {
	c := Config{OwnerClaim: defaultOwnerClaim, RoleClaim: defaultRoleClaim}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field, is := settings[name]
		if !is {
			return Config{}, fmt.Errorf("%q is not one of %s", name, strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		*field(&c) = named[name]
	}
	for _, text := range grants {
		g, err := parseGrant(text)
		if err != nil {
			return Config{}, err
		}
		c.Grants = append(c.Grants, g)
	}
	return c, c.check()
}

// parseGrant parses GROUP=ROLE. Group names may contain equal signs; role names do not.
func parseGrant(text string) (Grant, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return Grant{}, fmt.Errorf("grant %q: want GROUP=ROLE", text)
	}
	role, err := access.ParseRole(text[i+1:])
	if err != nil {
		return Grant{}, fmt.Errorf("grant %q: %w", text, err)
	}
	return Grant{Group: text[:i], Role: role}, nil
}

func (c Config) check() error {
	u, err := checkURL(c.Issuer)
	switch {
	case err != nil:
		return fmt.Errorf("issuer %q: %w", c.Issuer, err)
	case u.RawQuery != "":
		return fmt.Errorf("issuer %q: want a URL without a query", c.Issuer)
	case c.Audience == "":
		return errors.New("audience is missing: name the one that the issuer's tokens for this farm have")
	case c.OwnerClaim == "":
		return errors.New("owner-claim is empty: name the claim that has the caller's name, such as sub")
	case c.RoleClaim == "":
		return errors.New("role-claim is empty: name the claim that has the caller's groups, such as groups")
	case len(c.Grants) == 0:
		return errors.New("no group is given a role, so everybody would be refused: give roles to groups, as GROUP=ROLE")
	case len(c.Grants) > maxGrants:
		return fmt.Errorf("%d groups are given roles: want at most %d", len(c.Grants), maxGrants)
	}
	if c.OwnerPrefix == "" {
		return nil
	}
	if err := access.CheckName(c.OwnerPrefix); err != nil {
		return fmt.Errorf("owner-prefix: %w", err)
	}
	return nil
}

// checkURL parses a URL that has to be trusted.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("want a URL such as https://issuer.example.com/farm")
	}
	return u, nil
}
