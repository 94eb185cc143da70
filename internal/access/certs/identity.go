package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
)

// rolePrefix begins the organisation of a certificate's subject that contains the role: O=tilth:agent.
const rolePrefix = "tilth:"

// Identity returns the identity of a verified client certificate: its common name, and the role from its organisation.
// It returns false for a certificate without such an organisation, which is no credential, and an error for an invalid
// or expired one.
func Identity(c *x509.Certificate, now time.Time) (access.Identity, bool, error) {
	var roles []access.Role
	for _, o := range c.Subject.Organization {
		text, is := strings.CutPrefix(o, rolePrefix)
		if !is {
			continue
		}
		role, err := access.ParseRole(text)
		if err != nil {
			return access.Identity{}, false, fmt.Errorf("certificate of %q: %w", c.Subject.CommonName, err)
		}
		roles = append(roles, role)
	}
	if len(roles) == 0 {
		return access.Identity{}, false, nil
	}
	if len(roles) > 1 {
		return access.Identity{}, false, fmt.Errorf("certificate of %q: it tells %d roles, want one", c.Subject.CommonName, len(roles))
	}
	if err := access.CheckName(c.Subject.CommonName); err != nil {
		return access.Identity{}, false, fmt.Errorf("certificate: %w", err)
	}
	// The handshake has checked this, but connections may outlive the certificate.
	if now.After(c.NotAfter) {
		return access.Identity{}, false, errors.New("the certificate has expired")
	}
	return access.Identity{Name: c.Subject.CommonName, Role: roles[0], Proof: "certificate " + c.SerialNumber.Text(16)}, true, nil
}
