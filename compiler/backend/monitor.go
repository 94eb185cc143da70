package backend

import (
	"context"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Monitored is a backend whose devices have their own clocks and temperatures. A runner monitors them instead of its
// processor.
type Monitored interface {
	// Monitor builds a monitor in dir, which must exist while the monitor is used.
	Monitor(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string) (Monitor, error)
}

// Monitor observes a device.
type Monitor interface {
	// Name identifies the timed work. Only times with the same name are comparable.
	Name() string
	// Read times fixed work and reads the device's health. Nothing else may compute on the device meanwhile.
	Read(ctx context.Context) (Reading, error)
}

// Reading is a reading of a monitor.
type Reading struct {
	// Compute and Memory hold the seconds of each sample of work bound by arithmetic and by memory.
	Compute, Memory []float64
	Health          Health
}

// Health is the state of a device under load. Values that it does not report are omitted.
type Health struct {
	// Unknown is the reason why the health is unavailable; empty otherwise.
	Unknown string
	Celsius []float64
	Clocks  []DeviceClock
	// Slowed reports whether its clocks are reduced; nil if unknown.
	Slowed *bool
	Errors *MemoryErrors
	// Impairments lists reasons why current measurements are not representative, such as "is slowed down to cool".
	Impairments []string
}

// DeviceClock is a clock of a part of a device. Max is its maximum, or 0.
type DeviceClock struct {
	Part       string
	Hertz, Max float64
}

// MemoryErrors counts a memory's errors since the driver started.
type MemoryErrors struct{ Corrected, Uncorrected uint64 }
