package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
)

const (
	// maxTurn bounds waits for other processes that use this machine or the records file.
	maxTurn = 10 * time.Minute
	// noWaitLimit bounds, with --no-wait, the waits of a command that has begun.
	noWaitLimit = 5 * time.Second
)

// machineFlags configures how a command that times on this machine waits for others.
type machineFlags struct{ noWait bool }

func (f *machineFlags) add(c *cobra.Command, resource string) {
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "fail if another process uses "+resource+", instead of waiting for up to 10m")
}

// lock returns the lock of this machine, which logs whom it waits for and calls expired, if not nil, when a wait takes
// too long. With --no-wait, it returns an error if the machine is in use.
func (f *machineFlags) lock(log *slog.Logger, expired func(error)) (*hostlock.Lock, error) {
	lock, err := hostlock.Announced(log)
	if err != nil {
		return nil, err
	}
	if lock.Limit(maxTurn, expired); f.noWait {
		lock.Limit(noWaitLimit, expired)
		err = lock.Refused()
	}
	return lock, err
}

// time prevents other processes from using this machine until release is called.
func (f *machineFlags) time(ctx context.Context, log *slog.Logger) (release func(), err error) {
	lock, err := f.lock(log, nil)
	if err != nil {
		return nil, err
	}
	return lock.Time(ctx)
}
