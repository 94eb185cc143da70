// Package caller implements the client side of authentication: it verifies the tracker and presents the caller's
// credentials. Start with Proof.
package caller
