// Package retry repeats calls that failed because the other side was unavailable, with exponential back-off
// and jitter.
package retry
