// Command dist builds a release of the checked-out commit: programs, archives, Debian packages, a container image, an
// SBOM, and the digests of all files. Builds are reproducible: they only depend on the commit and the version of Go
// (docs/releases.md).
//
// It is a separate module, to keep its dependencies out of the program's.
package main
