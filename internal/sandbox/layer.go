package sandbox

// Layer is one of the walls around a process. Any of them may be missing on a machine.
type Layer string

const (
	// User is another user than the runner's, or a user namespace.
	User Layer = "user"
	// Processes hides others: they are neither seen nor signalled, and none outlives the first.
	Processes Layer = "processes"
	// Network means that there is none, not even a loopback that is up.
	Network Layer = "network"
	// IPC hides System V objects and message queues of others.
	IPC Layer = "ipc"
	// Hostname hides the machine's name.
	Hostname Layer = "hostname"
	// Files hides what is not needed: only the files named are seen, and none can be written.
	Files Layer = "files"
	// Privileges are given up: there are none, and none can be gained by a set-user-ID program.
	Privileges Layer = "privileges"
	// Calls refuses system calls that kernels do not need.
	Calls Layer = "calls"
	// Memory is a control group that bounds memory and processes, so that it is told who used them up.
	Memory Layer = "memory"
)

// State says whether this machine has a layer.
type State struct {
	Layer Layer
	// How it is had, e.g. "user 65000"; empty when it is missing.
	How string
	// Except says around which programs it is left out where it is had, and why; empty when around none.
	Except string
	// Missing is why it is not had, with the remedy.
	Missing string
	// Substitute says that something else does the job where the layer is missing.
	Substitute string
}
