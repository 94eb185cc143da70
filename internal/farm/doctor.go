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

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/runner"
)

// Doctor examines a machine for what tuning needs and what degrades measurements. Findings have a cost and a remedy.
type Doctor struct {
	// Root contains the kernel's proc and sys folders.
	Root fs.FS
	// Compiler names the compiler; empty means the one that tuning would use.
	Compiler string
	// Data is the folder of records. NoData is the error if there is no such folder.
	Data   string
	NoData error
	// Lock prevents other timing while the noise is measured. NoLock is the error if there is no lock.
	Lock   *hostlock.Lock
	NoLock error
}

const (
	// minFiles is the number of open files that a tracker with a dozen agents may need.
	minFiles = 4096
	// maxNoise is the acceptable noise relative to a latency. The rule that drops slow candidates assumes at
	// least 1 %.
	maxNoise = 0.02
	// maxWait is how long to wait for another process to finish measuring before the noise is left unknown.
	maxWait = 3 * time.Second
)

// Examine runs all checks. It takes about a second, plus up to maxWait if another process measures. It
// returns an error if ctx ended.
func (d Doctor) Examine(ctx context.Context) ([]Finding, error) {
	findings := []Finding{d.compiler(ctx)}
	findings = append(findings, d.processor())
	findings = append(findings, d.sandbox()...)
	findings = append(findings,
		clockSource(d.Root), governor(ctx, d.Root), boost(d.Root), siblings(d.Root), hugePages(d.Root), d.noise(ctx), temporary())
	findings = append(findings, d.disk()...)
	findings = append(findings, openFiles())
	return findings, context.Cause(ctx)
}

func (d Doctor) compiler(ctx context.Context) Finding {
	const check = "compiler"
	tc, err := toolchain.Find(ctx, d.Compiler)
	if err != nil { // the error includes the remedy
		return Finding{Check: check, State: Prevents, Found: err.Error(), Cost: "no candidate can be built"}
	}
	return Finding{Check: check, State: Well, Found: tc.Name}
}

func (d Doctor) processor() Finding {
	const check = "processor"
	classes, err := target.Classes()
	if err != nil {
		return Finding{
			Check: check, State: Prevents, Found: err.Error(), Cost: "no kernel can be made for it",
			Remedy: "tune on another machine, or on a farm with --tracker",
		}
	}
	found := make([]string, len(classes))
	for k, c := range classes {
		found[k] = fmt.Sprintf("%s, %d cores", c.Target.Fingerprint(), c.Target.Threads())
		if k > 0 {
			found[k] = fmt.Sprintf("%s:%d %s", target.Here, k, found[k])
		}
	}
	return Finding{Check: check, State: Well, Found: strings.Join(found, "; ")}
}

// sandbox returns a finding for each missing layer, or a single one if none is missing.
func (d Doctor) sandbox() []Finding {
	const check = "sandbox"
	dir, err := os.MkdirTemp("", "tilth-doctor-*")
	if err != nil {
		return []Finding{{Check: check, State: Unknown, Found: err.Error(), Remedy: temporaryRemedy}}
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // sandboxed programs run as another user, who must be able to enter
		return []Finding{{Check: check, State: Unknown, Found: err.Error(), Remedy: temporaryRemedy}}
	}
	box, err := sandbox.Open(sandbox.BestEffort, filepath.Join(dir, "sandbox"))
	if err != nil {
		return []Finding{{
			Check: check, State: Costly, Found: err.Error(), Cost: "tuning refuses to run with a sandbox", Remedy: "--sandbox off, for code that you trust",
		}}
	}
	defer box.Close()
	return layers(box.States())
}

func layers(states []sandbox.State) (missing []Finding) {
	var had []string
	for _, s := range states {
		if s.How != "" || s.Substitute != "" {
			had = append(had, string(s.Layer))
			continue
		}
		missing = append(missing, Finding{
			Check: "sandbox: " + string(s.Layer), State: Costly, Found: "missing",
			Cost:   "code from others is less isolated; --sandbox required refuses to run",
			Remedy: s.Missing, // the reason, with the remedy
		})
	}
	if missing == nil {
		return []Finding{{Check: "sandbox", State: Well, Found: strings.Join(had, ", ")}}
	}
	return missing
}

// noise measures the spread of times of fixed work.
func (d Doctor) noise(ctx context.Context) Finding {
	const check = "noise"
	t, err := target.Native(0)
	if err != nil {
		return Finding{Check: check, State: Unknown, Found: "no kernel runs on this processor"}
	}
	if d.NoLock != nil {
		return Finding{Check: check, State: Unknown, Found: d.NoLock.Error(), Remedy: temporaryRemedy}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, maxWait, errBusy)
	defer cancel()
	release, err := d.Lock.Time(waiting)
	if errors.Is(err, errBusy) {
		return Finding{Check: check, State: Unknown, Found: errBusy.Error(), Remedy: "examine the machine again: " + err.Error()}
	}
	var times runner.CalibrationTimes
	if err == nil {
		times, err = runner.NewCalibrationKernels(t.Threads(), t.CacheBytes(), t.Affinity()).Run(ctx)
		release()
	}
	if err != nil {
		return Finding{Check: check, State: Unknown, Found: err.Error()}
	}
	return scatter(times)
}

// errBusy means that other processes held the machine for too long.
var errBusy = errors.New("another process measures")

func scatter(times runner.CalibrationTimes) Finding {
	_, compute := stats.Steady(times.Compute)
	_, memory := stats.Steady(times.Memory)
	found := fmt.Sprintf("%.1f %% in computing, %.1f %% in memory", 100*compute, 100*memory)
	return judged("noise", found, max(compute, memory) <= maxNoise,
		"smaller differences between candidates need more samples to be told, and some are never told",
		"end other programs, use fewer --threads than cores, and see what else here is not well")
}

func openFiles() Finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Finding{Check: "open files", State: Unknown, Found: err.Error()}
	}
	return filesWithin(limit.Max) // Go programs raise their soft limit to the hard one
}

func filesWithin(limit uint64) Finding {
	found := fmt.Sprintf("%d at most", limit)
	if limit == unix.RLIM_INFINITY {
		found = "unlimited"
	}
	return judged("open files", found, limit >= minFiles,
		"a tracker refuses connections of agents when it has no file left",
		fmt.Sprintf("ulimit -Hn %d, or LimitNOFILE in the unit", minFiles))
}

// FindingState is the severity of a finding.
type FindingState string

// States of findings.
const (
	// Well needs no attention.
	Well FindingState = "well"
	// Costly allows tuning, at a cost.
	Costly FindingState = "costs"
	// Prevents makes tuning impossible.
	Prevents FindingState = "prevents"
	// Unknown means that this machine does not expose the information.
	Unknown FindingState = "not known"
)

// Finding is the result of one check.
type Finding struct {
	Check string       `json:"check"`
	State FindingState `json:"state"`
	// Found describes the observation in a few words.
	Found string `json:"found"`
	// Cost is the consequence, and Remedy the fix, if the state is not Well.
	Cost   string `json:"cost,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// CannotTune returns an error that names everything that prevents tuning, or nil.
func CannotTune(findings []Finding) error {
	var causes []string
	for _, f := range findings {
		if f.State == Prevents {
			causes = append(causes, f.Check+": "+f.Found)
		}
	}
	if causes == nil {
		return nil
	}
	return fmt.Errorf("this machine cannot tune: %s", strings.Join(causes, "; "))
}

// judged returns a finding that is well, or has the given cost and remedy.
func judged(check, found string, well bool, cost, remedy string) Finding {
	if well {
		return Finding{Check: check, State: Well, Found: found}
	}
	return Finding{Check: check, State: Costly, Found: found, Cost: cost, Remedy: remedy}
}

// notShown returns a finding for an unreadable file.
func notShown(check, file string) Finding {
	return Finding{
		Check: check, State: Unknown, Found: "/" + file + " cannot be read",
		Remedy: "look on the host: a container or virtual machine need not show it",
	}
}

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
