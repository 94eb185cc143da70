// Package oidctest is an issuer of tokens for tests: a server with real TLS, discovery, keys and signatures. It stands
// in for Keycloak, Dex and the like, which are beyond the machine's edge, and fails as they may. Begin with Issuer.
package oidctest
