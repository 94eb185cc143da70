// Package sandbox starts untrusted programs as another user, in their own namespaces, with only the files
// that they need, without privileges, and with restricted system calls and resources. It does not depend on
// what the programs do.
//
// Layers that the machine or the runner's privileges do not allow are left out and reported: see States and
// docs/sandbox.md. Start with Open and Sandbox.
package sandbox
