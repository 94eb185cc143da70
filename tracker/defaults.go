package tracker

import "time"

// How long a tracker waits, and how often it tries, unless it is told otherwise.
const (
	DefaultHeartbeat    = 5 * time.Second
	DefaultLeaseTimeout = 30 * time.Second
	DefaultGrace        = 2 * time.Minute
	DefaultOutageWait   = 2 * time.Minute
	DefaultSearchTurn   = 2 * time.Minute
	DefaultMaxAttempts  = 4
)
