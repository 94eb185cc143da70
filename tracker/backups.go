package tracker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
	waits "github.com/tilth-dev/tilth/internal/retry"
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

// keepBackups makes backups until ctx ends. The first one is due when the newest in the folder is as old as they are
// to be apart.
func (t *Tracker) keepBackups(ctx context.Context) {
	policy := &t.cfg.Backups
	if policy.Dir == "" {
		return
	}
	wait := time.Duration(0)
	if all, err := policy.list(); err == nil && len(all) > 0 {
		t.metrics.backups.tell(all)
		wait = max(policy.Every-t.cfg.Now().Sub(all[0].at), 0)
	}
	for waits.Sleep(ctx, wait) == nil {
		wait = policy.Every
		if err := t.backUp(ctx); err != nil && ctx.Err() == nil {
			t.metrics.backups.failures.Inc()
			t.log.Error("no backup was made", "folder", policy.Dir, "error", err)
			wait = min(policy.Every, longestBackupRetry)
		}
	}
}

// backUp makes a backup, and removes those that are not to be kept any more.
func (t *Tracker) backUp(ctx context.Context) error {
	select {
	case t.backups <- struct{}{}:
		defer func() { <-t.backups }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	policy, begin := &t.cfg.Backups, t.cfg.Now()
	if err := disk.MakeFolder(policy.Dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(policy.Dir, backupPrefix+begin.UTC().Format(backupTime)+backupSuffix)
	report, err := t.db.BackupTo(ctx, path, begin)
	if err != nil {
		return err
	}
	t.log.Info("backup made and verified", "file", path, "bytes", report.SizeBytes, "rows", report.Rows)
	all, err := policy.list()
	if err != nil {
		return err
	}
	t.metrics.backups.tell(all)
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
