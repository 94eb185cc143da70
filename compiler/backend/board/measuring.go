package board

import (
	"context"
	"errors"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

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
