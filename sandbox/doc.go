// Package sandbox starts programs that nobody vouches for: as another user, in namespaces of their own, with a tree of
// files reduced to what they need, without privileges, with few system calls and bounded means. It knows nothing of
// what the programs do.
//
// What a machine or the runner's rights do not allow is left out, and said: see Open, States and docs/sandbox.md.
package sandbox
