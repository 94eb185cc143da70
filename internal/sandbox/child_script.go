package sandbox

import (
	"cmp"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one system call that a child makes before its program starts. Its script keeps the memory that it points to.
type call struct {
	number uintptr
	args   [6]uintptr
	// chained calls take the result of the previous call as first argument.
	chained bool
	// optional calls may fail.
	optional bool
	// replaceable calls are followed by an equivalent for kernels that lack them.
	replaceable bool
	layer       Layer
	what        string
}

// script is the work of a child between its creation and its program: a list of system calls, because the child of a
// multi-threaded process can do hardly anything else. The parent builds the script, and fork executes it in the child.
type script struct {
	calls []call
	// kept holds the memory that arguments point to. The child uses the parent's memory, and the heap does not move.
	kept []any
	// layer is the layer of the calls being added.
	layer Layer
	// held lists descriptors of this process reserved for the child.
	held []int
	err  error
}

// firstKept is the lowest descriptor number reserved for a child; programs expect theirs below.
const firstKept = 64

// keep duplicates a descriptor to a number that no other one overwrites, and returns it.
func (s *script) keep(descriptor uintptr) uintptr {
	kept, err := unix.FcntlInt(descriptor, unix.F_DUPFD_CLOEXEC, firstKept)
	if err != nil {
		s.err = cmp.Or(s.err, fmt.Errorf("sandbox: keeping a descriptor: %w", err))
		return 0
	}
	s.held = append(s.held, kept)
	return uintptr(kept)
}

// release closes the kept descriptors once the child's program has started.
func (s *script) release() {
	for _, d := range s.held {
		_ = unix.Close(d) // nothing was written
	}
}

func (s *script) add(what string, number uintptr, args ...uintptr) *call {
	c := call{number: number, layer: s.layer, what: what}
	copy(c.args[:], args)
	s.calls = append(s.calls, c)
	return &s.calls[len(s.calls)-1]
}

// text returns the address of a NUL-terminated copy of a string.
func (s *script) text(value string) uintptr {
	if strings.ContainsRune(value, 0) && s.err == nil {
		s.err = fmt.Errorf("sandbox: %q has a NUL", value)
	}
	bytes := append([]byte(value), 0)
	s.kept = append(s.kept, bytes)
	return uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
}

// texts returns the address of a NULL-terminated array of strings.
func (s *script) texts(values []string) uintptr {
	array := make([]uintptr, 0, len(values)+1)
	for _, v := range values {
		array = append(array, s.text(v))
	}
	array = append(array, 0)
	s.kept = append(s.kept, array)
	return uintptr(unsafe.Pointer(unsafe.SliceData(array)))
}

// at returns the address of a value on the heap.
func at[T any](s *script, value *T) uintptr {
	s.kept = append(s.kept, value)
	return uintptr(unsafe.Pointer(value))
}

// atFDCWD is AT_FDCWD as an argument.
const atFDCWD = ^uintptr(-unix.AT_FDCWD - 1)

// write opens a file, writes a text to it, and leaves it open until the program starts.
func (s *script) write(path, value string) {
	s.add("open "+path, unix.SYS_OPENAT, atFDCWD, s.text(path), unix.O_WRONLY|unix.O_CLOEXEC)
	s.add("write "+path, unix.SYS_WRITE, 0, s.text(value), uintptr(len(value))).chained = true
}

func (s *script) mount(what, source, target, kind string, flags uintptr, data string) *call {
	return s.add(what, unix.SYS_MOUNT, s.text(source), s.text(target), s.text(kind), flags, s.text(data))
}

func (s *script) limit(what string, resource int, value uint64) {
	s.add("limit "+what, unix.SYS_PRLIMIT64, 0, uintptr(resource), at(s, &unix.Rlimit{Cur: value, Max: value}), 0)
}
