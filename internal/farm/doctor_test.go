package farm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/runner"
)

// kernel returns a file system with files of /proc and /sys: names and contents alternate.
func kernel(files ...string) fs.FS {
	root := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1] + "\n")}
	}
	return root
}

func TestDoctorJudgesKernelSettings(t *testing.T) {
	const (
		clock   = "sys/devices/system/clocksource/clocksource0/current_clocksource"
		policy  = "sys/devices/system/cpu/cpufreq/policy0/"
		general = "sys/devices/system/cpu/cpufreq/boost"
		intel   = "sys/devices/system/cpu/intel_pstate/no_turbo"
		smt     = "sys/devices/system/cpu/smt/active"
		pages   = "sys/kernel/mm/transparent_hugepage/enabled"
	)
	governed := func(root fs.FS) Finding { return governor(t.Context(), root) }
	for _, c := range []struct {
		name  string
		judge func(fs.FS) Finding
		files []string
		state FindingState
		found string
	}{
		{"a clock without system calls", clockSource, []string{clock, "tsc"}, Well, "tsc"},
		{"a clock with system calls", clockSource, []string{clock, "hpet"}, Costly, "hpet"},
		{"no clock source", clockSource, nil, Unknown, clock},
		{"a steady governor", governed, []string{policy + "scaling_cur_freq", "1", policy + "scaling_governor", "performance"}, Well, "performance"},
		{"a governor that follows", governed, []string{policy + "scaling_cur_freq", "1", policy + "scaling_governor", "schedutil"}, Costly, "schedutil"},
		{"no governor", governed, nil, Unknown, "cpufreq"},
		{"Intel's boost", boost, []string{intel, "0"}, Costly, "on"},
		{"Intel's without", boost, []string{intel, "1"}, Well, "off"},
		{"others' boost", boost, []string{general, "1"}, Costly, "on"},
		{"others' without", boost, []string{general, "0"}, Well, "off"},
		{"boost not shown", boost, nil, Unknown, general},
		{"siblings", siblings, []string{smt, "1"}, Costly, "on"},
		{"no siblings", siblings, []string{smt, "0"}, Well, "off"},
		{"siblings not shown", siblings, nil, Unknown, smt},
		{"huge pages on request", hugePages, []string{pages, "always [madvise] never"}, Well, "madvise"},
		{"no huge pages", hugePages, []string{pages, "always madvise [never]"}, Costly, "never"},
		{"huge pages not shown", hugePages, nil, Unknown, pages},
	} {
		got := c.judge(kernel(c.files...))
		if got.State != c.state || !strings.Contains(got.Found, c.found) {
			t.Errorf("%s: %+v, want %s with %q", c.name, got, c.state, c.found)
		}
		if costs := got.Cost != ""; costs != (c.state == Costly) || (got.Remedy != "") != (c.state != Well) || strings.Contains(got.Remedy, ">") {
			t.Errorf("%s: cost %q, remedy %q", c.name, got.Cost, got.Remedy)
		}
	}
}

func TestNoiseIsJudgedByHowFarTimesScatter(t *testing.T) {
	calm, wild := []float64{1, 1.001, 1.002, 1.003}, []float64{1, 1.2, 1.4, 1.6}
	if f := scatter(runner.CalibrationTimes{Compute: calm, Memory: calm}); f.State != Well {
		t.Errorf("calm times are %+v", f)
	}
	if f := scatter(runner.CalibrationTimes{Compute: calm, Memory: wild}); f.State != Costly {
		t.Errorf("wild times are %+v", f)
	}
}

func TestEachMissingLayerOfTheSandboxIsAFinding(t *testing.T) {
	had := sandbox.State{Layer: sandbox.Network, How: "a namespace"}
	if f := layers([]sandbox.State{had}); len(f) != 1 || f[0].State != Well {
		t.Errorf("a sandbox that lacks nothing is %+v", f)
	}
	f := layers([]sandbox.State{had, {Layer: sandbox.User, Missing: "run as root"}})
	if len(f) != 1 || f[0].Check != "sandbox: user" || f[0].State != Costly || !strings.Contains(f[0].Remedy, "run as root") {
		t.Errorf("a sandbox without a user is %+v", f)
	}
}

func TestMissingFoldersAreJudgedByTheirParent(t *testing.T) {
	dir := t.TempDir()
	if f := syncTime(filepath.Join(dir, "not", "yet")); f.State != Well && f.State != Costly {
		t.Errorf("got %+v", f)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	if f := syncTime("/proc/none"); f.State != Prevents || f.Remedy == "" {
		t.Errorf("a folder that takes no files is %+v", f)
	}
}

func TestFullDiskIsToldFromAFolderOfOthers(t *testing.T) {
	full := notWritten("/data", &fs.PathError{Op: "write", Path: "/data/f", Err: unix.ENOSPC})
	if full.State != Prevents || !strings.Contains(full.Remedy, "free some space") {
		t.Errorf("a full disk is %+v", full)
	}
	closed := notWritten("/data", &fs.PathError{Op: "open", Path: "/data/f", Err: unix.EACCES})
	if closed.State != Prevents || !strings.Contains(closed.Remedy, "the right to write to /data") {
		t.Errorf("a folder of others is %+v", closed)
	}
}

func TestLimitsOfOpenFilesAreJudged(t *testing.T) {
	if f := filesWithin(unix.RLIM_INFINITY); f.State != Well || f.Found != "unlimited" {
		t.Errorf("no limit is %+v", f)
	}
	if f := filesWithin(minFiles - 1); f.State != Costly || f.Found != "4095 at most" {
		t.Errorf("a low limit is %+v", f)
	}
}

func TestDoctorReportsMissingFacilities(t *testing.T) {
	t.Setenv("TMPDIR", "/proc/none")
	d := Doctor{NoData: errors.New("no HOME"), NoLock: errors.New("no lock")}
	if f := d.disk(); len(f) != 1 || f[0].State != Prevents || f[0].Found != "no HOME" {
		t.Errorf("without a home: %+v", f)
	}
	if f := d.noise(t.Context()); f.State != Unknown || f.Found != "no lock" {
		t.Errorf("without a lock: %+v", f)
	}
	if f := temporary(); f.State != Prevents || !strings.Contains(f.Remedy, "TMPDIR") {
		t.Errorf("without a folder for temporary files: %+v", f)
	}
}

func TestDoctorWaitsBrieflyForABusyMachine(t *testing.T) {
	dir := t.TempDir()
	lock, err := hostlock.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	release, err := lock.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if f := (Doctor{Lock: lock}).noise(t.Context()); f.State != Unknown || f.Found != "another process measures" || f.Remedy == "" {
		t.Errorf("got %+v", f)
	}
}

func TestCannotTuneNamesAllThatPreventsTuning(t *testing.T) {
	if err := CannotTune([]Finding{{Check: "a", State: Costly}, {Check: "b", State: Unknown}}); err != nil {
		t.Errorf("costs are %v", err)
	}
	err := CannotTune([]Finding{{Check: "compiler", State: Prevents, Found: "none"}, {Check: "disk", State: Prevents, Found: "full"}})
	if err == nil || err.Error() != "this machine cannot tune: compiler: none; disk: full" {
		t.Errorf("got %v", err)
	}
}

func TestThisMachineIsExamined(t *testing.T) {
	lock, err := hostlock.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := Doctor{Root: os.DirFS("/"), Compiler: "no-such-compiler", Data: t.TempDir(), Lock: lock}
	findings, err := d.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{"compiler", "processor", "clock source", "CPU governor", "boost", "SMT siblings", "huge pages", "noise", "disk space", "disk sync", "open files"} {
		if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == check && f.Found != "" }) {
			t.Errorf("no finding of %s", check)
		}
	}
	if err := CannotTune(findings); err == nil || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("without a compiler: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Examine(ended); err == nil {
		t.Error("it goes on although it was asked to end")
	}
}
