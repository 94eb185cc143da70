package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// driverBytes is the address space that device drivers reserve, which exceeds the memory of any machine.
const driverBytes = 1 << 46

// deviceArguments returns the harness's arguments for a device, or none for the processor.
func (p Plan) deviceArguments() []string {
	d := p.Device
	if d == nil {
		return nil
	}
	args := []string{"--device", strconv.Itoa(d.Number)}
	if d.Driver != "" {
		args = append(args, "--driver", d.Driver)
	}
	if d.Visible != "" {
		args = append(args, "--visible", d.Visible)
	}
	if p.scratch != "" {
		args = append(args, "--scratch", p.scratch)
	}
	return args
}

// openForDevice drops the sandbox layers that device drivers do not support: drivers access system and device
// files, start threads, and query files in ways that CPU kernels never do. The Processes layer gets its own
// /proc or is dropped, too. The reference runs on the processor and has already finished. A driver that
// compiles gets a scratch folder, which the returned function removes.
func (p *Plan) openForDevice() (closed func(), err error) {
	if p.Device == nil || p.Device.Link { // the harness has no driver
		return func() {}, nil
	}
	p.Sandbox = p.Sandbox.Only(sandbox.Processes, sandbox.Network, sandbox.IPC, sandbox.Hostname, sandbox.Privileges, sandbox.Memory)
	if !p.Device.Compiles {
		return func() {}, nil
	}
	if p.scratch, err = os.MkdirTemp("", "tilth-driver-*"); err != nil {
		return nil, fmt.Errorf("a folder for the driver: %w", err)
	}
	scratch := p.scratch
	p.Limits.Load += p.Limits.Compile
	// Later writes of a driver do not affect measurements.
	return func() { _ = os.RemoveAll(scratch) }, nil
}

// reserved returns the address space that does not count as memory.
func (p Plan) reserved() int64 {
	if p.Device == nil || p.Device.Link {
		return 0
	}
	return driverBytes
}

// linked reports whether candidates run at the end of a link. The harness then runs no candidates and is trusted.
func (p Plan) linked() bool { return p.Device != nil && p.Device.Link }

// maxLosses is how often a device may be lost while a plan or an examination runs, before the failure is reported.
const maxLosses = 2

// lost returns the error of an event that reports a lost device.
func (e event) lost() error {
	if e.Event != "lost" {
		return nil
	}
	return &lostError{e.Message}
}

// blamed reports whether the harness of a linked device attributes an error to a candidate.
func blamed(err error) bool {
	return errors.As(err, new(*faultError)) || errors.As(err, new(*overdueError))
}

// lost returns the error of a process that ended without a candidate to blame, because the harness itself
// limits candidates.
func (p Plan) lost(err error, ending string) error {
	if errors.As(err, new(*lostError)) {
		return err
	}
	return &lostError{strings.TrimSpace(fmt.Sprintf("the harness: %v %s", err, ending))}
}

// line opens the link to the device.
func (p Plan) line(ctx context.Context) (*os.File, error) {
	if p.Line == nil {
		return nil, &infraError{"no link leads to the board: start the runner with --board"}
	}
	return p.Line(ctx)
}
