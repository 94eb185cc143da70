// Package signing signs files and verifies signatures in minisign's format: Ed25519 over the BLAKE2b-512
// digest of a file, stored in FILE.minisig. It is interoperable with minisign. A signature contains a signed
// (trusted) comment that describes the file.
//
// A signature only depends on the file, the comment and the key, so signing the same release twice gives the
// same bytes.
package signing
