package farm

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/runner"
)

// readableClocks lists the kernel's clock sources that programs read without a system call.
var readableClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"}

func clockSource(root fs.FS) Finding {
	const check, file = "clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"
	source := text(root, file)
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
	case text(root, intel) != "":
		off := text(root, intel) == "1"
		return judged(check, onOff(!off), off, cost, "for steadier, if slower, measurements: echo 1 | sudo tee /"+intel)
	case text(root, general) != "":
		off := text(root, general) == "0"
		return judged(check, onOff(!off), off, cost, "for steadier, if slower, measurements: echo 0 | sudo tee /"+general)
	}
	return notShown(check, general)
}

func siblings(root fs.FS) Finding {
	const check, file = "SMT siblings", "sys/devices/system/cpu/smt/active"
	active := text(root, file)
	if active == "" {
		return notShown(check, file)
	}
	return judged(check, onOff(active == "1"), active == "0",
		"what runs on the other thread of a core slows the kernel that is measured",
		"keep the machine idle otherwise, or: echo off | sudo tee /sys/devices/system/cpu/smt/control")
}

func hugePages(root fs.FS) Finding {
	const check, file = "huge pages", "sys/kernel/mm/transparent_hugepage/enabled"
	_, rest, found := strings.Cut(text(root, file), "[")
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
