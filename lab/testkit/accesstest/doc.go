// Package accesstest provides peers of a tracker for tests: Issuer, a token issuer with real TLS, discovery, keys and
// signatures, which can imitate the failures of others, and Flood, a client that does not finish its messages or does
// not read its answers.
package accesstest
