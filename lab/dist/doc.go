// Command dist makes a release of the commit that is checked out: programs, archives, packages for Debian, an image
// for containers, a list of what they are made of, and the digests of all. The same commit and the same version of Go
// give the same bytes, whoever makes them and wherever (docs/releases.md).
//
// It is a module of its own, so that the program's has none of what makes releases.
package main
