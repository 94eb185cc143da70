// This file maintains the records file while the tracker runs: scheduled backups, each verified, and a daily check of
// all rows. It depends on the store, but not on the state machine.

package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	waits "github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
)

// Backups is a schedule of backups of the records file with its retention rules.
type Backups struct {
	// Dir is a folder used for backups only; empty makes none.
	Dir string
	// Every is the interval between backups.
	Every time.Duration
	// Keep and KeepFor bound the number and age of backups; 0 means no bound. The newest good backup is always kept.
	Keep    int
	KeepFor time.Duration
}

// Names of backups contain their start times, which order them.
const (
	backupPrefix, backupSuffix = "tilth-", ".db"
	backupTime                 = "20060102T150405Z"
)

// longestBackupRetry bounds the delay after a failed backup.
const longestBackupRetry = 10 * time.Minute

// backup is a good backup in the folder.
type backup struct {
	path string
	at   time.Time
	size int64
}

// list returns the backups in the folder, newest first. Unverified backups have other names and are not listed.
func (b *Backups) list() (all []backup, err error) {
	entries, err := os.ReadDir(b.Dir)
	for _, e := range entries {
		at, named := timeOfBackup(e.Name())
		if info, err := e.Info(); err == nil && named && info.Mode().IsRegular() {
			all = append(all, backup{filepath.Join(b.Dir, e.Name()), at, info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b backup) int { return b.at.Compare(a.at) })
	return all, err
}

func timeOfBackup(name string) (at time.Time, ok bool) {
	text, prefixed := strings.CutPrefix(name, backupPrefix)
	text, suffixed := strings.CutSuffix(text, backupSuffix)
	at, err := time.Parse(backupTime, text)
	return at, prefixed && suffixed && err == nil
}

// expired returns the backups beyond the retention bounds. all must be sorted newest first.
func (b *Backups) expired(all []backup, now time.Time) (out []backup) {
	for i, old := range all {
		if i > 0 && (b.Keep > 0 && i >= b.Keep || b.KeepFor > 0 && now.Sub(old.at) > b.KeepFor) {
			out = append(out, old)
		}
	}
	return out
}

// UpkeepObserver receives statistics of upkeep.
type UpkeepObserver interface {
	// Backups reports the start time and size of the newest good backup in the folder, and the number of good
	// backups. It is only called with at least one.
	Backups(newest time.Time, sizeBytes int64, count int)
	// NoBackup reports a backup that failed or was damaged.
	NoBackup()
	// RowsChecked counts rows that were verified. Checked reports when a pass over all rows ended.
	RowsChecked(rows int)
	Checked(at time.Time)
}

// Upkeep maintains a records file.
type Upkeep struct {
	// File may be nil for stores without a file; Run then does nothing.
	File records.File
	// Policy schedules the backups.
	Policy Backups
	// ScrubBytes is the scrubbing rate in bytes per second; 0 disables scrubbing.
	ScrubBytes int64
	Logger     *slog.Logger
	// Now is the wall clock, for timestamps; Clock is monotonic, for intervals.
	Now, Clock func() time.Time
	Observer   UpkeepObserver

	backups chan struct{} // has an element while a backup is running
}

// Run makes backups and scrubs rows until ctx ends.
func (u *Upkeep) Run(ctx context.Context) {
	if u.File == nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { u.scrub(ctx) })
	all.Go(func() { u.keepBackups(ctx) })
}

// Begin reserves the file for a backup made by the caller; ok is false while another is running. The caller must call
// end.
func (u *Upkeep) Begin() (end func(), ok bool) {
	select {
	case u.backups <- struct{}{}:
		return func() { <-u.backups }, true
	default:
		return nil, false
	}
}

// keepBackups makes backups until ctx ends. The first is due one interval after the newest in the folder.
func (u *Upkeep) keepBackups(ctx context.Context) {
	if u.Policy.Dir == "" {
		return
	}
	wait := time.Duration(0)
	if all, err := u.Policy.list(); err == nil && len(all) > 0 {
		u.observe(all)
		wait = max(u.Policy.Every-u.Now().Sub(all[0].at), 0)
	}
	for waits.Sleep(ctx, wait) == nil {
		wait = u.Policy.Every
		if err := u.backUp(ctx); err != nil && ctx.Err() == nil {
			u.Observer.NoBackup()
			u.Logger.Error("no backup was made", "folder", u.Policy.Dir, "error", err)
			wait = min(u.Policy.Every, longestBackupRetry)
		}
	}
}

func (u *Upkeep) observe(all []backup) { u.Observer.Backups(all[0].at, all[0].size, len(all)) }

// backUp makes a backup and removes expired ones.
func (u *Upkeep) backUp(ctx context.Context) error {
	select {
	case u.backups <- struct{}{}:
		defer func() { <-u.backups }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	policy, begin := &u.Policy, u.Now()
	if err := filesystem.MakeFolder(policy.Dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(policy.Dir, backupPrefix+begin.UTC().Format(backupTime)+backupSuffix)
	report, err := u.File.BackupTo(ctx, path, begin)
	if err != nil {
		return err
	}
	u.Logger.Info("backup made and verified", "file", path, "bytes", report.SizeBytes, "rows", report.Rows)
	all, err := policy.list()
	if err != nil {
		return err
	}
	u.observe(all)
	return policy.remove(policy.expired(all, begin))
}

// remove removes backups and leftovers of interrupted ones.
func (b *Backups) remove(expired []backup) (err error) {
	left, _ := filepath.Glob(filepath.Join(b.Dir, backupPrefix+"*"+backupSuffix+".partial"))
	for _, old := range expired {
		left = append(left, old.path)
	}
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove old backups: %w", err)
	}
	return nil
}

// scrubEvery is the interval between checks of each row.
const scrubEvery = 24 * time.Hour

// scrub checks all rows of the records file once a day, at the rate used for artifacts, until ctx ends.
func (u *Upkeep) scrub(ctx context.Context) {
	rate := float64(u.ScrubBytes)
	if rate <= 0 {
		return
	}
	for ctx.Err() == nil {
		begin := u.Clock()
		err := u.File.Scrub(ctx, func(rows, sizeBytes int) error {
			u.Observer.RowsChecked(rows)
			return waits.Sleep(ctx, time.Duration(float64(sizeBytes)/rate*float64(time.Second)))
		})
		if err == nil {
			u.Observer.Checked(u.Now())
		} else if ctx.Err() == nil {
			u.Logger.Error("records file not checked", "error", err)
		}
		_ = waits.Sleep(ctx, max(scrubEvery-u.Clock().Sub(begin), time.Minute))
	}
}
