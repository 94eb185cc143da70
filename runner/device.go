package runner

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/tilth-dev/tilth/sandbox"
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

// line opens the link to the device.
func (p Plan) line(ctx context.Context) (*os.File, error) {
	if p.Line == nil {
		return nil, &infraError{"no link leads to the board: start the runner with --board"}
	}
	return p.Line(ctx)
}
