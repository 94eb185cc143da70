package runner

import (
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/sandbox"
)

// driverBytes is the address space that drivers of devices reserve, which is more than machines have memory.
const driverBytes = 1 << 46

// arguments are those of a harness for a device; none where it is the processor.
func arguments(d *backend.Device) []string {
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
	return args
}

// openForDevice leaves out the layers that drivers of devices do not bear: they open files of the system and of the
// device, read and write, start threads, and ask of files what the processor's kernels have no use for. The reference,
// which runs on the processor, has run by then.
func (p *Plan) openForDevice() {
	if p.Device != nil {
		p.Sandbox = p.Sandbox.Only(sandbox.Processes, sandbox.Network, sandbox.IPC, sandbox.Hostname, sandbox.Privileges, sandbox.Memory)
	}
}

// reserved is the address space that does not count as memory.
func (p Plan) reserved() int64 {
	if p.Device == nil {
		return 0
	}
	return driverBytes
}
