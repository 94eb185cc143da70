// Package sandbox starts untrusted programs: as another user, in namespaces of their own, with only the files that
// they need, without privileges, with few system calls and limited resources. It knows nothing of what the programs
// do.
//
// Layers that the machine or the runner's rights do not allow are left out and reported: see States and
// docs/sandbox.md. Begin with Open and Sandbox.
package sandbox
