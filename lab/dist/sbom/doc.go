// Package sbom lists what the programs of a release are made of, in SPDX 2.3: the modules of each with version, digest
// and licence, and the digests of the programs.
package sbom
