// Package signing signs files and verifies signatures, in minisign's format: Ed25519 over the BLAKE2b-512 digest of
// the file, in a file of its own, FILE.minisig. Whoever has minisign can verify what this package signs, and the
// other way round. A signature carries a trusted comment, which is signed too: it says what the file is.
//
// A signature depends on the file, the comment and the key alone, so that who signs the same release twice gets the
// same bytes.
package signing
