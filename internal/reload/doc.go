// Package reload caches a value read from files and reads it again after a change, so that certificates and
// tokens can be replaced without a restart.
package reload
