package sandbox

// Layer is one isolation mechanism of a process. Any of them may be unavailable on a machine.
type Layer string

const (
	// User runs programs as a different user, or in a user namespace.
	User Layer = "user"
	// Processes hides other processes, which can neither be seen nor signalled. All processes end with the
	// first.
	Processes Layer = "processes"
	// Network removes network access, including loopback.
	Network Layer = "network"
	// IPC hides System V objects and message queues.
	IPC Layer = "ipc"
	// Hostname hides the host name.
	Hostname Layer = "hostname"
	// Files shows only the named files, read-only.
	Files Layer = "files"
	// Privileges drops all privileges, also those of set-user-ID programs.
	Privileges Layer = "privileges"
	// Calls refuses system calls that kernels do not need.
	Calls Layer = "calls"
	// Memory uses a control group to limit memory and processes, so that their exhaustion is detected.
	Memory Layer = "memory"
)

// State reports whether this machine provides a layer.
type State struct {
	Layer Layer
	// How describes the mechanism, such as "user 65000"; empty if the layer is missing.
	How string
	// Except names programs that run without an available layer, and the reason. It may be empty.
	Except string
	// Missing is why the layer is unavailable, with the remedy.
	Missing string
	// Substitute names what replaces a missing layer.
	Substitute string
}
