// Package retry says how long a failed batch waits before it is retried.
package retry
