package execute

import (
	"os"
	"syscall"
)

// nobody is the user and group without rights.
const nobody = 65534

// apart is how far from others a process can be put: where this one is root, it is another user's, sees no processes but its own, and has no
// network.
func apart() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
}
