package backend

import (
	"context"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Backend is one kind of device, or one way to make code for it. Its methods may be called by several goroutines at a
// time, and only with targets of the backend.
type Backend interface {
	Devices
	Code
	Programs
	// Space is the candidate schedules of a workload, with the algorithms that numerics allow.
	Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *space.Space
	// Storage is how a program stores factors of products in float32 (frontend.Options.Storage), at a level of
	// numerics, in a type of 16 bits; Invalid is the one that gains most.
	Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage
	// Clock is about how many of the cycles that costs of a space count are a second.
	Clock(t *target.Target) float64
	// Features describes candidates for the cost model.
	Features() Features
}

// Devices are what a backend makes code for.
type Devices interface {
	// Name is what targets call the backend.
	Name() string
	// Targets are the names of the targets that Target knows.
	Targets() []string
	// Target finds a target by its name. Zero threads means the target's own number.
	Target(name string, threads int) (*target.Target, error)
	// Present says why this machine has no device that runs code for a target; nil when it has.
	Present(t *target.Target) error
	// Check says what a description of a target lacks that the backend needs, if anything.
	Check(t *target.Target) error
	// Measure finds what a target does at most, while nothing else computes on it. It builds in dir, which must be
	// there; launcher, which may be empty, stands before the command.
	Measure(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (roofline.Rates, error)
	// Between guesses the rates of a target from those of two of the same device, with fewer and with more threads.
	Between(few, many Measured, t *target.Target) roofline.Rates
}

// Measured is what was measured of a target.
type Measured struct {
	Target *target.Target
	Rates  roofline.Rates
}

// Code is how schedules become source.
type Code interface {
	// Print prints a kernel under a symbol that none of its module's others may have. The error says why the schedule
	// cannot be lowered.
	Print(symbol string, k Kernel, t *target.Target) (Printed, error)
	// Module is what to compile for kernels that Print printed, all of w and t, so that the harness can load them.
	Module(w *expr.Workload, kernels []Printed, t *target.Target) (toolchain.Build, error)
	// Reference is what to compile for the kernel that candidates are verified against.
	Reference(w *expr.Workload, t *target.Target) (toolchain.Build, error)
	// NewUnit is an empty translation unit of a package.
	NewUnit(t *target.Target) Unit
	// Dump is a kernel after each step from its schedule to its source, which is the last, for whoever debugs it.
	Dump(s *schedule.Schedule, t *target.Target) ([]Step, error)
}

// Step is a kernel as text after a step of its compilation.
type Step struct{ Name, Text string }

// Source is the name of the last step.
const Source = "source"

// Programs are what runs kernels on a device.
type Programs interface {
	// Harness is what to compile for the program that verifies and times the kernels of modules.
	Harness(t *target.Target) toolchain.Build
	// Device is what the harness must know to reach a device that is not its own processor; nil where it is.
	Device(t *target.Target) *Device
	// Runtime is what a package has beside its kernels and its plan.
	Runtime(t *target.Target) Runtime
}

// Chooser is a backend whose devices a machine may have several of. The name of a target may then say which, behind a
// colon: by its number or by its own name.
type Chooser interface {
	Choose(named, device string, threads int) (*target.Target, error)
}

// Device is one of a machine's devices, as its driver counts them from 0.
type Device struct {
	Number int
	// ID is the device's own name, which no other of the machine has; empty where it was not chosen.
	ID string
	// Driver is the path of the driver's library; empty = where the system has it.
	Driver string
	// Compiles says that the driver compiles candidates in the harness: it starts programs, writes files into a folder
	// that it is given, and takes its time.
	Compiles bool
	// Link says that a board is at the other end of a link, which somebody opened; Number is its descriptor in the
	// harness.
	Link bool
	// Visible is which devices the driver is to show at all, in its own words; empty = all.
	Visible string
}

// Kernel is one candidate.
type Kernel struct {
	// ID is the trace's digest.
	ID       string
	Schedule *schedule.Schedule
}

// Printed is a kernel in source before it is known which others it shares a module with.
type Printed interface {
	// Size is the length of its functions in bytes, which a compiler's time grows with.
	Size() int
}

// Unit is a translation unit in the making.
type Unit interface {
	// Add prints a kernel and, under a symbol, its description, whose id is given. The error says why the schedule
	// cannot be lowered.
	Add(symbol, id string, s *schedule.Schedule) (Info, error)
	// Source is the whole unit.
	Source() string
	// Own is what to compile beside the unit: kernels that somebody wrote.
	Own() []toolchain.File
	// Embedded is code for devices that the source takes in.
	Embedded() []toolchain.Embedded
}

// Info is what a caller must know of a printed kernel.
type Info struct {
	// Prepared are the packed constants, in the order of the kernel's prepared buffers.
	Prepared []ir.Pack
	// WorkspaceBytes is scratch shared by all workers, WorkerBytes that of each.
	WorkspaceBytes, WorkerBytes int64
}

// Runtime is the sources that a package is compiled from beside its kernels and its plan.
type Runtime struct {
	Sources, Headers []toolchain.File
	// Interface is the header for programs that use the package.
	Interface toolchain.File
}

// Features describe candidates to cost models. They are told from the schedule, without lowering it, and only read it.
type Features interface {
	// Set is the columns.
	Set() *features.Set
	// Describe is the row of a candidate on a target. Cycles is the space's analytic cost; NaN when it is not known.
	Describe(s *schedule.Schedule, t *target.Target, cycles float64) features.Row
	// Prior is the cost model for a target of which nothing was measured, as LightGBM's text; empty when there is
	// none.
	Prior(t *target.Target) string
	// Code is about how many instructions the source of a candidate has, which a compiler's time grows with.
	Code(s *schedule.Schedule, t *target.Target) float64
}
