// Package reload keeps a value that was read from files, and reads it again when one of them changes, so that
// certificates and tokens are replaced without a restart.
package reload
