package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/tracker"
)

// patienceFlags configures timeouts and retries of a tracker.
type patienceFlags struct {
	lease, grace, outage, turn time.Duration
	attempts                   int
}

// minLease is three heartbeats.
const minLease = 3 * tracker.DefaultHeartbeat

func (f *patienceFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.lease, "lease-timeout", tracker.DefaultLeaseTimeout, "how long an agent may be silent before its work goes to others")
	c.Flags().DurationVar(&f.grace, "grace", tracker.DefaultGrace, "how long an agent may be silent after a restart or a pause of the tracker")
	c.Flags().DurationVar(&f.outage, "outage-wait", tracker.DefaultOutageWait, "how long to wait when most agents fall silent at once")
	c.Flags().DurationVar(&f.turn, "search-turn", tracker.DefaultSearchTurn, "how long a tuner may hold a job while others wait for one")
	c.Flags().IntVar(&f.attempts, "max-attempts", tracker.DefaultMaxAttempts, "failed attempts after which a batch is abandoned")
}

func (f *patienceFlags) check() error {
	switch {
	case f.lease < minLease:
		return usagef("--lease-timeout %s: want at least %s, which is three heartbeats", f.lease, minLease)
	case f.grace < f.lease:
		return usagef("--grace %s: want at least the --lease-timeout, %s", f.grace, f.lease)
	case f.outage <= 0:
		return usagef("--outage-wait %s: want a positive time", f.outage)
	case f.turn <= 0:
		return usagef("--search-turn %s: want a positive time", f.turn)
	case f.attempts < 1 || f.attempts > math.MaxInt32/16:
		return usagef("--max-attempts %d: want at least 1", f.attempts)
	}
	return nil
}

func (f *patienceFlags) patience() farm.Patience {
	return farm.Patience{LeaseTimeout: f.lease, Grace: f.grace, OutageWait: f.outage, SearchTurn: f.turn, MaxAttempts: uint32(f.attempts)}
}
