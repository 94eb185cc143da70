package tracker

import "time"

// Default timeouts and limits of a tracker.
const (
	DefaultHeartbeat    = 5 * time.Second
	DefaultLeaseTimeout = 30 * time.Second
	DefaultGrace        = 2 * time.Minute
	DefaultOutageWait   = 2 * time.Minute
	DefaultSearchTurn   = 2 * time.Minute
	DefaultMaxAttempts  = 4
)
