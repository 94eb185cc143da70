package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_RISCV64

// harmlessHere lists harmless calls that only this architecture has.
var harmlessHere = []int{unix.SYS_MMAP, unix.SYS_GETRLIMIT, unix.SYS_NEWFSTATAT}

var conditionalHere []rule
