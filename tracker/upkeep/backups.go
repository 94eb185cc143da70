package upkeep

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

	"github.com/tilth-dev/tilth/internal/disk"
	waits "github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
)

// Backups says when the records file is backed up, where, and which backups are kept.
type Backups struct {
	// Dir is a folder for the backups alone; empty = none are made.
	Dir string
	// Every is the time from one to the next.
	Every time.Duration
	// Keep and KeepFor bound how many are kept, and how long; 0 = no bound. The last good one stays whatever they say.
	Keep    int
	KeepFor time.Duration
}

// The names of backups have the times at which they began, which order them.
const (
	backupPrefix, backupSuffix = "tilth-", ".db"
	backupTime                 = "20060102T150405Z"
)

// longestBackupRetry is how long after a backup that failed the next one is tried, at most.
const longestBackupRetry = 10 * time.Minute

// backup is a good one in the folder.
type backup struct {
	path string
	at   time.Time
	size int64
}

// list returns the backups in the folder, the newest first. None counts that was not verified: those have another
// name.
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

// expired are those of the backups, the newest first, that are not to be kept.
func (b *Backups) expired(all []backup, now time.Time) (out []backup) {
	for i, old := range all {
		if i > 0 && (b.Keep > 0 && i >= b.Keep || b.KeepFor > 0 && now.Sub(old.at) > b.KeepFor) {
			out = append(out, old)
		}
	}
	return out
}

// Observer hears of what upkeep did.
type Observer interface {
	// Backups are the good ones in the folder, of which there is one at least: when the newest began, its size, and
	// how many there are.
	Backups(newest time.Time, sizeBytes int64, count int)
	// NoBackup is a backup that was not made, or was damaged.
	NoBackup()
	// RowsChecked are rows that were compared with their checksums, and Checked is when all had been.
	RowsChecked(rows int)
	Checked(at time.Time)
}

// Upkeep looks after a records file.
type Upkeep struct {
	// File is nil when the store keeps none: there is nothing to be done then.
	File records.File
	// Policy says when backups are made.
	Policy Backups
	// ScrubBytes are checked in a second; 0 = none.
	ScrubBytes int64
	Logger     *slog.Logger
	// Now is the wall's clock, for stamps, and Clock the one by which waits are judged.
	Now, Clock func() time.Time
	Observer   Observer

	backups chan struct{} // holds an element while one is under way
}

// New returns upkeep that is ready.
func New(u Upkeep) *Upkeep {
	u.backups = make(chan struct{}, 1)
	return &u
}

// Run makes backups and checks rows, until ctx ends.
func (u *Upkeep) Run(ctx context.Context) {
	if u.File == nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { u.scrub(ctx) })
	all.Go(func() { u.keepBackups(ctx) })
}

// Begin begins a backup that somebody else makes; ok is false while one is under way.
func (u *Upkeep) Begin() (end func(), ok bool) {
	select {
	case u.backups <- struct{}{}:
		return func() { <-u.backups }, true
	default:
		return nil, false
	}
}

// keepBackups makes backups until ctx ends. The first one is due when the newest in the folder is as old as they are
// to be apart.
func (u *Upkeep) keepBackups(ctx context.Context) {
	if u.Policy.Dir == "" {
		return
	}
	wait := time.Duration(0)
	if all, err := u.Policy.list(); err == nil && len(all) > 0 {
		u.tell(all)
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

func (u *Upkeep) tell(all []backup) { u.Observer.Backups(all[0].at, all[0].size, len(all)) }

// backUp makes a backup, and removes those that are not to be kept any more.
func (u *Upkeep) backUp(ctx context.Context) error {
	select {
	case u.backups <- struct{}{}:
		defer func() { <-u.backups }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	policy, begin := &u.Policy, u.Now()
	if err := disk.MakeFolder(policy.Dir, 0o700); err != nil {
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
	u.tell(all)
	return policy.remove(policy.expired(all, begin))
}

// remove removes backups, and what one left that was killed.
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
