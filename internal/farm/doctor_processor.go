package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/runner"
)

// readableClocks lists the kernel's clock sources that programs read without a system call.
var readableClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"}

func clockSource(root fs.FS) Finding {
	const check, file = "clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"
	source := filesystem.Text(root, file)
	if source == "" {
		return notShown(check, file)
	}
	return judged(check, source, slices.Contains(readableClocks, source),
		"reading the clock takes a system call, which lengthens what is timed",
		"boot with clocksource=tsc, unless the kernel's log says that the TSC is unstable")
}

func governor(ctx context.Context, root fs.FS) Finding {
	const check = "CPU governor"
	sys, err := fs.Sub(root, "sys")
	if err != nil {
		return Finding{Check: check, State: Unknown, Found: err.Error()}
	}
	var governors []string
	for _, clock := range (&runner.SurroundingsReader{Sys: sys}).Read(ctx).GetClocks() {
		if g := clock.GetGovernor(); g != "" && !slices.Contains(governors, g) {
			governors = append(governors, g)
		}
	}
	if governors == nil {
		return notShown(check, "sys/devices/system/cpu/cpufreq")
	}
	return judged(check, strings.Join(governors, ", "), slices.Equal(governors, []string{"performance"}),
		"the clock follows the load, so what is timed first is slower",
		"sudo cpupower frequency-set -g performance")
}

func boost(root fs.FS) Finding {
	const check, general, intel = "boost", "sys/devices/system/cpu/cpufreq/boost", "sys/devices/system/cpu/intel_pstate/no_turbo"
	const cost = "the clock depends on temperature and on what other cores do, so latencies vary"
	switch {
	case filesystem.Text(root, intel) != "":
		off := filesystem.Text(root, intel) == "1"
		return judged(check, onOff(!off), off, cost, "for steadier, if slower, measurements: echo 1 | sudo tee /"+intel)
	case filesystem.Text(root, general) != "":
		off := filesystem.Text(root, general) == "0"
		return judged(check, onOff(!off), off, cost, "for steadier, if slower, measurements: echo 0 | sudo tee /"+general)
	}
	return notShown(check, general)
}

func siblings(root fs.FS) Finding {
	const check, file = "SMT siblings", "sys/devices/system/cpu/smt/active"
	active := filesystem.Text(root, file)
	if active == "" {
		return notShown(check, file)
	}
	return judged(check, onOff(active == "1"), active == "0",
		"what runs on the other thread of a core slows the kernel that is measured",
		"keep the machine idle otherwise, or: echo off | sudo tee /sys/devices/system/cpu/smt/control")
}

func hugePages(root fs.FS) Finding {
	const check, file = "huge pages", "sys/kernel/mm/transparent_hugepage/enabled"
	_, rest, found := strings.Cut(filesystem.Text(root, file), "[")
	mode, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return notShown(check, file)
	}
	return judged(check, mode, mode != "never",
		"large tensors need many more page walks, and latencies vary with where their pages lie",
		"echo madvise | sudo tee /"+file)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

const (
	// minFree is the free space, in bytes, needed for packages, objects and records of a few models.
	minFree = 2 << 30
	// maxSync is the longest acceptable time of a synced write.
	maxSync = 20 * time.Millisecond
	// syncs is the number of timed writes, of which the median counts.
	syncs = 5
)

const (
	spaceCheck, syncCheck = "disk space", "disk sync"

	spaceRemedy = "free some space, or put the data elsewhere with XDG_DATA_HOME; 'tilth records prune' and 'compact' make records smaller"
	// foldersRemedy and temporaryRemedy apply to unusable folders.
	foldersRemedy   = "name a folder that you may write to with XDG_DATA_HOME"
	temporaryRemedy = "name a folder that you may write to with TMPDIR"
)

// existing returns the folder or its nearest existing ancestor.
func existing(folder string) string {
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

func freeSpace(folder string) Finding {
	free, err := filesystem.FreeBytes(existing(folder))
	if err != nil {
		return Finding{Check: spaceCheck, State: Unknown, Found: err.Error(), Remedy: foldersRemedy}
	}
	return judged(spaceCheck, fmt.Sprintf("%s free for %s", humanize.Bytes(free), folder), free >= minFree,
		"tuning ends when the disk is full",
		spaceRemedy)
}

func syncTime(folder string) Finding {
	taken, err := timeSyncs(existing(folder))
	if err != nil {
		return notWritten(folder, err)
	}
	return judged(syncCheck, humanize.Seconds(taken.Seconds())+" a write", taken <= maxSync,
		"what is measured is on the disk before it counts, so each batch waits for it",
		"put the data on a local SSD with XDG_DATA_HOME, or 'tilth tracker --data'")
}

// notWritten returns the finding for a folder that is not writable.
func notWritten(folder string, err error) Finding {
	remedy := "give the user the right to write to " + folder + ", or name another folder with XDG_DATA_HOME"
	if isFull(err) {
		remedy = spaceRemedy
	}
	return Finding{Check: syncCheck, State: Prevents, Found: err.Error(), Cost: "measurements cannot be recorded", Remedy: remedy}
}

// isFull reports whether an error means that the disk or the user's quota is full.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// temporary checks the folder for temporary files.
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

// disk checks the folder of records.
func (d Doctor) disk() []Finding {
	if d.NoData != nil {
		return []Finding{{
			Check: spaceCheck, State: Prevents, Found: d.NoData.Error(), Cost: "measurements cannot be recorded",
			Remedy: "set HOME, or name a folder with XDG_DATA_HOME",
		}}
	}
	return []Finding{freeSpace(d.Data), syncTime(d.Data)}
}

// timeSyncs returns the median time of a small synced write.
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
