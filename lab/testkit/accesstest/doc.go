// Package accesstest provides peers of a tracker for tests: Issuer, a token issuer with real TLS, discovery, keys and
// signatures, which can imitate the failures of others, and Flood, a misbehaving client.
package accesstest
