package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
)

// minFreeBytes is the free disk space below which the tracker is not ready. The records file grows in steps of 16
// MiB, and a tracker with a full disk stops.
const minFreeBytes = 64 << 20

// Alive returns an error once the store has failed, since memory is then ahead of it for good.
func (e *Coordinator) Alive() error {
	select {
	case <-e.failed:
		if e.remote != nil {
			return errors.New("the database cannot be written, see the log and restart the tracker")
		}
		return errors.New("the records file cannot be written, see the log: free some disk space and restart the tracker")
	default:
		return nil
	}
}

// Ready returns an error unless a write would succeed now. The presence of agents does not matter: they reach the
// tracker through the load balancer that asks this.
func (e *Coordinator) Ready(ctx context.Context) error {
	if err := e.Alive(); err != nil {
		return err
	}
	select {
	case <-e.closing:
		return errors.New("the tracker is stopping")
	default:
	}
	if e.away() {
		return records.ErrAway
	}
	if err := e.artifacts.Unavailable(); err != nil {
		return err
	}
	if err := e.store.Commit(&records.Write{}).Wait(ctx); err != nil { // waits for everything before it
		return fmt.Errorf("the records file is not written: %w", err)
	}
	if f, err := os.Open(os.DevNull); err != nil {
		return fmt.Errorf("the process lacks file descriptors (%w): raise its limit on open files", err)
	} else if err := f.Close(); err != nil {
		return err
	}
	free, err := e.FreeBytes()
	if err != nil {
		return errors.New("the disk of the records cannot be looked at")
	}
	if free < minFreeBytes {
		return fmt.Errorf("the disk of the records has %s left, less than %s: free some space", humanize.Bytes(free), humanize.Bytes(minFreeBytes))
	}
	return nil
}

// FreeBytes returns the free space for records or artifacts, whichever is less.
func (e *Coordinator) FreeBytes() (int64, error) {
	artifacts, err := filesystem.FreeBytes(e.cfg.Artifacts.Dir)
	file, ok := e.store.(records.File)
	if err != nil || !ok {
		return artifacts, err
	}
	own, err := filesystem.FreeBytes(file.Path())
	return min(own, artifacts), err
}
