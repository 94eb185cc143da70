package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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

const (
	spaceCheck, syncCheck = "disk space", "disk sync"

	spaceRemedy = "free some space, or put the data elsewhere with XDG_DATA_HOME; 'tilth records prune' and 'compact' make records smaller"
	// foldersRemedy and temporaryRemedy are for folders that cannot be used.
	foldersRemedy   = "name a folder that you may write to with XDG_DATA_HOME"
	temporaryRemedy = "name a folder that you may write to with TMPDIR"
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
	free, err := disk.FreeBytes(existing(folder))
	if err != nil {
		return Finding{Check: spaceCheck, State: Unknown, Found: err.Error(), Remedy: foldersRemedy}
	}
	return judged(spaceCheck, fmt.Sprintf("%s free for %s", show.Bytes(free), folder), free >= leastFree,
		"tuning ends when the disk is full",
		spaceRemedy)
}

func syncTime(folder string) Finding {
	taken, err := timeSyncs(existing(folder))
	if err != nil {
		return notWritten(folder, err)
	}
	return judged(syncCheck, show.Seconds(taken.Seconds())+" a write", taken <= mostSync,
		"what is measured is on the disk before it counts, so each batch waits for it",
		"put the data on a local SSD with XDG_DATA_HOME, or 'tilth tracker --data'")
}

// notWritten is the finding of a folder that takes no files.
func notWritten(folder string, err error) Finding {
	remedy := "give the user the right to write to " + folder + ", or name another folder with XDG_DATA_HOME"
	if isFull(err) {
		remedy = spaceRemedy
	}
	return Finding{Check: syncCheck, State: Prevents, Found: err.Error(), Cost: "measurements cannot be recorded", Remedy: remedy}
}

// isFull says whether nothing is written for want of space, the user's part of it included.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// temporary looks whether there is a folder for temporary files.
func temporary() Finding {
	const check = "temporary files"
	dir, err := os.MkdirTemp("", "tilth-doctor-*")
	if err == nil {
		err = os.Remove(dir)
	}
	if err == nil {
		return Finding{Check: check, State: Well, Found: os.TempDir()}
	}
	remedy := temporaryRemedy
	if isFull(err) {
		remedy = "free some space in " + os.TempDir() + ", or name another folder with TMPDIR"
	}
	return Finding{Check: check, State: Prevents, Found: err.Error(), Cost: "nothing can be built or measured", Remedy: remedy}
}

// disk has what is found of the folder of records.
func (m Machine) disk() []Finding {
	if m.NoData != nil {
		return []Finding{{
			Check: spaceCheck, State: Prevents, Found: m.NoData.Error(), Cost: "measurements cannot be recorded",
			Remedy: "set HOME, or name a folder with XDG_DATA_HOME",
		}}
	}
	return []Finding{freeSpace(m.Data), syncTime(m.Data)}
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
