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

// driverBytes is the address space that drivers of devices reserve, which is more than machines have memory.
const driverBytes = 1 << 46

// deviceArguments are those of a harness for a device; none where it is the processor.
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

// openForDevice leaves out the layers that drivers of devices do not bear: they open files of the system and of the
// device, read and write, start threads, and ask of files what the processor's kernels have no use for. The layer of
// processes goes with a /proc of its own, or is left out, too. The reference, which runs on the processor, has run by
// then. A driver that compiles gets a folder, which is gone when the function that comes back is called.
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
	// What a driver's program still writes there is nothing that measurements depend on.
	return func() { _ = os.RemoveAll(scratch) }, nil
}

// reserved is the address space that does not count as memory.
func (p Plan) reserved() int64 {
	if p.Device == nil || p.Device.Link {
		return 0
	}
	return driverBytes
}

// linked says whether candidates run at the end of a link. The harness, which runs none, is trusted then.
func (p Plan) linked() bool { return p.Device != nil && p.Device.Link }

// mostLosses is how often a device may be lost while a plan's kernels are measured, or one of them is examined, before
// that is left to others.
const mostLosses = 2

// lost is the error of an event that says that the device is lost.
func (e event) lost() error {
	if e.Event != "lost" {
		return nil
	}
	return &lostError{e.Message}
}

// blamed says whether an error is a candidate's doing, as the harness of a linked device says.
func blamed(err error) bool {
	return errors.As(err, new(*faultError)) || errors.As(err, new(*overdueError))
}

// lost is the error of a process that ended although no candidate is to blame: the harness bounds what each of them
// takes.
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
