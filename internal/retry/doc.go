// Package retry repeats calls that failed for want of the other side, with jittered exponential back-off.
package retry
