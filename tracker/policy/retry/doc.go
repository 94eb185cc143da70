// Package retry says how long what failed waits before it is tried again.
package retry
