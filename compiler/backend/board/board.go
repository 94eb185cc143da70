package board

import (
	"context"
	_ "embed" // for the library
	"errors"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// name is the backend's name.
const name = "board"

// clock is the cycles per second of a typical board. Boards range from 80 MHz (small Cortex-M4) to 600 MHz (the
// fastest Cortex-M7).
const clock = 200e6

// Backend implements backend.Backend. It generates kernels like the cpu backend.
type Backend struct{ cpu.Backend }

// Name implements backend.Devices.
func (Backend) Name() string { return name }

// Targets implements backend.Devices.
func (Backend) Targets() (list []target.Named) {
	for _, board := range target.Boards() {
		list = append(list, target.Named{Name: board, Description: "microcontroller, compiled to C source"})
	}
	return list
}

// Target implements backend.Devices.
func (Backend) Target(of string, threads int) (*target.Target, error) {
	return target.Board(of, name, threads)
}

// Check implements backend.Devices.
func (Backend) Check(t *target.Target) error {
	switch {
	case t.HasOperatingSystem():
		return fmt.Errorf("backend %s does not support %s; use one of %s", name, t.Arch(), strings.Join(target.Boards(), ", "))
	case t.Threads() > 1:
		return fmt.Errorf("a target of backend %s runs one thread, not %d", name, t.Threads())
	}
	return nil
}

// Clock implements backend.Backend.
func (Backend) Clock(*target.Target) float64 { return clock }

// errNoBoard is returned because microcontrollers cannot be measured on this machine.
var errNoBoard = errors.New("a microcontroller measures nothing by itself: kernels are measured on a board by a runner with --board")

// Present implements backend.Devices.
func (Backend) Present(*target.Target) error { return errNoBoard }

// Measure implements backend.Devices.
func (Backend) Measure(context.Context, *toolchain.Toolchain, *target.Target, string, []string) (roofline.Rates, error) {
	return roofline.Rates{}, errNoBoard
}

// Between implements backend.Devices. A microcontroller has one thread.
func (Backend) Between(few, _ backend.Measured, _ *target.Target) roofline.Rates { return few.Rates }

// library implements the part of the C library that kernels and compilers call.
//
//go:embed src/libc.c
var library string

// Runtime implements backend.Programs. It adds only what a C library would provide.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return backend.Runtime{
		Sources: []toolchain.File{{Name: "libc.c", Text: library}},
		Headers: []toolchain.File{{Name: cruntime.HeaderName, Text: cruntime.Header}},
	}
}
