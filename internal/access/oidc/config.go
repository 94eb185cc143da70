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

// Config says whose tokens are taken, and what they have to say.
type Config struct {
	// Issuer is its URL, exactly as its tokens have it.
	Issuer string
	// Audience is whom a token has to be for: usually the ID by which the issuer knows this farm.
	Audience string
	// OwnerClaim is the claim that names the caller, OwnerPrefix what comes before that name.
	OwnerClaim, OwnerPrefix string
	// RoleClaim is the claim with the caller's groups, a text or a list of texts.
	RoleClaim string
	// Grants give roles to groups. The first counts whose group the caller is in; who is in none is refused.
	Grants []Grant
	// CA is a file of authorities that the issuer's certificate is checked against; empty = the system's.
	CA string
}

// Grant gives the members of a group a role.
type Grant struct {
	Group string
	Role  access.Role
}

// Claims that are read unless others are named.
const (
	defaultOwnerClaim = "sub"
	defaultRoleClaim  = "groups"
)

// mostGrants bounds the list of grants.
const mostGrants = 1024

// settings are the parts of a Config that are given by name.
var settings = map[string]func(*Config) *string{
	"issuer":       func(c *Config) *string { return &c.Issuer },
	"audience":     func(c *Config) *string { return &c.Audience },
	"owner-claim":  func(c *Config) *string { return &c.OwnerClaim },
	"owner-prefix": func(c *Config) *string { return &c.OwnerPrefix },
	"role-claim":   func(c *Config) *string { return &c.RoleClaim },
	"ca":           func(c *Config) *string { return &c.CA },
}

// SettingNames are the names that Parse knows, in order.
func SettingNames() []string { return slices.Sorted(maps.Keys(settings)) }

// Parse reads settings by their names, and grants such as GROUP=ROLE.
func Parse(named map[string]string, grants []string) (Config, error) {
	c := Config{OwnerClaim: defaultOwnerClaim, RoleClaim: defaultRoleClaim}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field, is := settings[name]
		if !is {
			return Config{}, fmt.Errorf("%q is not one of %s", name, strings.Join(SettingNames(), ", "))
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

// parseGrant reads GROUP=ROLE. The names of groups may have equal signs, those of roles have none.
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
	case len(c.Grants) > mostGrants:
		return fmt.Errorf("%d groups are given roles: want at most %d", len(c.Grants), mostGrants)
	}
	if c.OwnerPrefix == "" {
		return nil
	}
	if err := access.CheckName(c.OwnerPrefix); err != nil {
		return fmt.Errorf("owner-prefix: %w", err)
	}
	return nil
}

// checkURL reads the URL of something that is to be trusted.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("want a URL such as https://issuer.example.com/farm")
	}
	return u, nil
}
