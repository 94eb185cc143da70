// Package sbom writes an SPDX 2.3 software bill of materials: the modules of each program with version, digest and
// licence, and the digests of the programs.
package sbom
