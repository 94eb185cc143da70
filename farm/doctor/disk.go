package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/internal/show"
)

const (
	// leastFree is what packages, objects and records of a few models take, in bytes.
	leastFree = 2 << 30
	// mostSync is how long a write to the disk may take before it is felt.
	mostSync = 20 * time.Millisecond
	// syncs are timed; the median counts.
	syncs = 5
)

// existing is a folder, or the nearest one above it that there is.
func existing(folder string) string {
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

func freeSpace(folder string) Finding {
	const check = "disk space"
	free, err := disk.FreeBytes(existing(folder))
	if err != nil {
		return Finding{Check: check, State: Unknown, Found: err.Error()}
	}
	return judged(check, fmt.Sprintf("%s free for %s", show.Bytes(free), folder), free >= leastFree,
		"tuning ends when the disk is full",
		"free some space, or put the data elsewhere with XDG_DATA_HOME; 'tilth records prune' and 'compact' make records smaller")
}

func syncTime(folder string) Finding {
	const check = "disk sync"
	taken, err := timeSyncs(existing(folder))
	if err != nil {
		return Finding{
			Check: check, State: Prevents, Found: err.Error(), Cost: "measurements cannot be recorded",
			Remedy: "give the user the right to write to " + folder + ", or name another folder with XDG_DATA_HOME",
		}
	}
	return judged(check, show.Seconds(taken.Seconds())+" a write", taken <= mostSync,
		"what is measured is on the disk before it counts, so each batch waits for it",
		"put the data on a local SSD with XDG_DATA_HOME, or 'tilth tracker --data'")
}

// timeSyncs is the median time that it takes to have a small write on the disk.
func timeSyncs(folder string) (median time.Duration, err error) {
	f, err := os.CreateTemp(folder, ".tilth-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var times []time.Duration
	for range syncs {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[syncs/2], nil
}
