// Package oidctest provides a token issuer for tests: a server with real TLS, discovery, keys and signatures. It
// stands in for Keycloak, Dex and the like, and can imitate their failures. Start with Issuer.
package oidctest
