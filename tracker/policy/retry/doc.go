// Package retry computes how long failed work waits before it is retried.
package retry
