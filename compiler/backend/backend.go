package backend

import (
	"context"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Backend supports one kind of device, or one way to generate code for it. Its methods are safe for concurrent use.
// They accept only targets of the backend.
type Backend interface {
	Devices
	Code
	Programs
	// Space returns the candidate schedules of a workload with the algorithms that numerics allows.
	Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space
	// Storage returns how a program stores the factors of float32 products (frontend.Options.Storage) at a level of
	// numerics, as a 16-bit type. Invalid selects the type with the largest gain.
	Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage
	// Clock returns approximately how many cycles of a space's costs make a second.
	Clock(t *target.Target) float64
	// Features describes candidates for the cost model.
	Features() Features
}

// Devices describes the devices that a backend generates code for.
type Devices interface {
	// Name returns the backend's name in targets.
	Name() string
	// Targets describes the targets that Target accepts.
	Targets() []target.Named
	// Target returns the target with the given name. Zero threads selects the target's default.
	Target(name string, threads int) (*target.Target, error)
	// Present returns an error that explains why this machine has no device for a target, and nil if it has one.
	Present(t *target.Target) error
	// Check returns an error if t lacks a property that the backend requires.
	Check(t *target.Target) error
	// Measure measures the peak rates of a target. Nothing else may compute on the device meanwhile. It builds in
	// dir, which must exist. launcher is an optional prefix of the command.
	Measure(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (roofline.Rates, error)
	// Between estimates the rates of a target from measurements of the same device with fewer and with more threads.
	Between(few, many Measured, t *target.Target) roofline.Rates
}

// Measured holds the measurements of a target.
type Measured struct {
	Target *target.Target
	Rates  roofline.Rates
}

// Code turns schedules into source.
type Code interface {
	// Print prints a kernel under a symbol that is unique in its module. It returns an error if the schedule cannot
	// be lowered.
	Print(symbol string, k Kernel, t *target.Target) (Printed, error)
	// Module returns the build of a module that the harness can load. The kernels must come from Print for the same w
	// and t.
	Module(w *expr.Workload, kernels []Printed, t *target.Target) (toolchain.Build, error)
	// Reference returns the build of the kernel that candidates are verified against.
	Reference(w *expr.Workload, t *target.Target) (toolchain.Build, error)
	// NewUnit returns an empty translation unit of a package.
	NewUnit(t *target.Target) Unit
	// Dump returns a kernel as text after each step of its compilation, for debugging; the last one is the source. It
	// leaves out the passes named in without. An error comes with the steps before it.
	Dump(s *schedule.Schedule, t *target.Target, without []string) ([]Step, error)
}

// Step is the text of a kernel after a step of its compilation, and the time that the step took.
type Step struct {
	Name, Text string
	Took       time.Duration
}

// Source is the name of the last step.
const Source = "source"

// Programs supplies the programs that run kernels on a device.
type Programs interface {
	// Harness returns the build of the program that verifies and times the kernels of modules.
	Harness(t *target.Target) toolchain.Build
	// Device returns how the harness reaches a device other than its own processor, or nil without one.
	Device(t *target.Target) *Device
	// Runtime returns the sources that a package needs beside its kernels and its plan.
	Runtime(t *target.Target) Runtime
}

// Chooser is a backend that supports several devices in one machine. A target name may select one after a colon, by
// number or by name.
type Chooser interface {
	Choose(named, device string, threads int) (*target.Target, error)
}

// Device identifies one of a machine's devices by the driver's number, from 0.
type Device struct {
	Number int
	// ID is the device's unique name; empty if no device was chosen.
	ID string
	// Driver is the path of the driver's library; empty for the system's default.
	Driver string
	// Compiles is set if the driver compiles candidates in the harness. Such a driver starts programs, writes files
	// into the folder that it is given, and takes time.
	Compiles bool
	// Link is set if the device is a board behind an open link. Number is the link's descriptor in the harness.
	Link bool
	// Visible lists the devices that the driver may show, in the driver's notation; empty for all.
	Visible string
}

// Kernel is one candidate.
type Kernel struct {
	// ID is the trace's digest.
	ID       string
	Schedule *schedule.Schedule
}

// Printed is the source of a kernel before it is linked with the other kernels of its module.
type Printed interface {
	// Size returns the length of the kernel's functions in bytes, a proxy for compile time.
	Size() int
}

// Unit is a translation unit under construction.
type Unit interface {
	// Add prints a kernel and, under a symbol, its description with the given id. It returns an error if the schedule
	// cannot be lowered.
	Add(symbol, id string, s *schedule.Schedule) (Info, error)
	// Source returns the whole unit.
	Source() string
	// Own returns the user-written kernels to compile beside the unit.
	Own() []toolchain.File
	// Embedded returns the device code that the source embeds.
	Embedded() []toolchain.Embedded
}

// Info describes a printed kernel to its caller.
type Info struct {
	// Prepared lists the packed constants in the order of the kernel's prepared buffers.
	Prepared []ir.Pack
	// WorkspaceBytes is the scratch memory shared by all workers, WorkerBytes that of each worker.
	WorkspaceBytes, WorkerBytes int64
}

// Runtime lists the sources of a package other than its kernels and its plan.
type Runtime struct {
	Sources, Headers []toolchain.File
	// Interface is the header for programs that use the package.
	Interface toolchain.File
}

// Features describes candidates to cost models. It reads the schedule without lowering or changing it.
type Features interface {
	// Set returns the columns.
	Set() *costfeatures.Set
	// Describe returns the row of a candidate on a target. cycles is the space's analytic cost, or NaN if unknown.
	Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row
	// Prior returns a cost model for a target without measurements, in LightGBM's text format, or "".
	Prior(t *target.Target) string
}
