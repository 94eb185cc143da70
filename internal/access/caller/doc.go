// Package caller is the client's side of authentication: how a caller checks the tracker and proves who it is. Begin
// with Proof.
package caller
