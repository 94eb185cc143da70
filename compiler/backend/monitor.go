package backend

import (
	"context"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Monitored is a backend whose devices have clocks and temperatures of their own, by which a runner watches them in
// the place of its processor's.
type Monitored interface {
	// Monitor builds in dir, which must be there as long as the monitor is used.
	Monitor(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string) (Monitor, error)
}

// Monitor watches a device.
type Monitor interface {
	// Name identifies the work that is timed: only times of one name are compared.
	Name() string
	// Look times fixed work, while nothing else computes on the device, and reads its health.
	Look(ctx context.Context) (Look, error)
}

// Look is what a monitor saw.
type Look struct {
	// Compute and Memory are seconds of each sample, of work bound by arithmetic and by memory.
	Compute, Memory []float64
	Health          Health
}

// Health is what a device tells of itself at work. What it does not tell is left out.
type Health struct {
	// Unknown is why it tells nothing; empty where it does.
	Unknown string
	Celsius []float64
	Clocks  []DeviceClock
	// Slowed says whether its clocks are held down; nil where that is not told.
	Slowed *bool
	Errors *MemoryErrors
	// Impairments are why what is measured now says little of the device: "is slowed down to cool".
	Impairments []string
}

// DeviceClock is a clock of a part of a device. Most is what it can be, or 0.
type DeviceClock struct {
	Part        string
	Hertz, Most float64
}

// MemoryErrors counts a memory's errors since the driver started.
type MemoryErrors struct{ Corrected, Uncorrected uint64 }
