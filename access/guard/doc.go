// Package guard keeps peers from holding more of a server than they use: connections, streams, and time in which
// nothing moves.
package guard
