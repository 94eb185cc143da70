package runner

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/tolerance"
)

// Roles of arguments, as in compiler/backend/cpu/cruntime.
const (
	Input    = 0
	Constant = 1
	Output   = 2
)

// Arg describes an argument of a workload's kernels.
type Arg struct {
	Name string `json:"name"`
	// Elements counts the elements in memory, including the gaps of strided arguments. Bytes is their size.
	Elements int64 `json:"elements"`
	Bytes    int64 `json:"bytes"`
	DType    int32 `json:"dtype"`
	Role     int32 `json:"role"`
	// Tolerance and Rounding are the parts of the tolerance of an output; see tolerance.Output.
	Tolerance float64 `json:"tolerance"`
	Rounding  float64 `json:"rounding"`
	// Most is the largest number that a count holds; zero for other arguments.
	Most int64 `json:"most"`
}

// compare returns the difference between a kernel's output and the reference, and the allowed difference.
func (a *Arg) compare(got, want []byte, growth float64) (d difference, allowed float64) {
	o := tolerance.Tolerance{Sums: a.Tolerance, Rounding: a.Rounding}
	if a.DType <= bfloat16Type {
		allowed = o.Times(growth)
		return compare(got, want, a.DType, allowed), allowed
	}
	if d = compareExactly(got, want, a.DType); d.relative == 0 || !isRounded(a.DType) {
		return d, 0
	}
	d = compareSlowly(got, want, a.DType)
	return d, o.OfIntegers(growth, d.largest)
}

// Workload describes what the kernels of a workload have in common.
type Workload struct {
	Args []Arg `json:"args"`
}

const (
	maxArgs     = 256
	maxArgBytes = 1 << 40
	slotAlign   = 64
)

// elementBytes holds the element sizes by data type.
var elementBytes = [...]int64{0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1}

// Check returns an error if a harness's description of a workload is invalid.
func (w *Workload) Check() error {
	if len(w.Args) < 1 || len(w.Args) > maxArgs {
		return fmt.Errorf("the workload has %d arguments, not 1 to %d", len(w.Args), maxArgs)
	}
	for _, a := range w.Args {
		switch {
		case a.Role < Input || a.Role > Output, a.DType < 1 || int(a.DType) >= len(elementBytes):
			return fmt.Errorf("argument %q has role %d and type %d", a.Name, a.Role, a.DType)
		case a.Elements < 0 || a.Elements > maxArgBytes || a.Bytes != a.Elements*elementBytes[a.DType] || a.Bytes > maxArgBytes:
			return fmt.Errorf("argument %q has %d elements in %d bytes", a.Name, a.Elements, a.Bytes)
		case !(a.Tolerance >= 0) || math.IsInf(a.Tolerance, 1), !(a.Rounding >= 0) || math.IsInf(a.Rounding, 1):
			return fmt.Errorf("argument %q has the tolerances %v and %v", a.Name, a.Tolerance, a.Rounding)
		}
	}
	if w.SlotBytes() == 0 {
		return errors.New("the workload has no outputs")
	}
	return nil
}

// runs returns how often an execution runs a kernel: once for each point of its counts.
func (w *Workload) runs() int {
	for _, a := range w.Args {
		if a.Most > 0 {
			return expr.Points
		}
	}
	return 1
}

func padded(bytes int64) int64 { return (bytes + slotAlign - 1) / slotAlign * slotAlign }

// SlotBytes returns the size of the outputs of one execution, each padded to 64 bytes.
func (w *Workload) SlotBytes() (bytes int64) {
	for _, a := range w.Args {
		if a.Role == Output {
			bytes += padded(a.Bytes)
		}
	}
	return bytes
}

// Judge compares two slots. relative is the largest relative error of all outputs. message is empty if they
// agree within the tolerance of each output, multiplied by growth, which the kernel's algorithm declares.
func (w *Workload) Judge(got, want []byte, growth float64) (relative float64, message string) {
	for _, a := range w.Args {
		if a.Role != Output {
			continue
		}
		d, allowed := a.compare(got[:a.Bytes], want[:a.Bytes], growth)
		relative = max(relative, d.relative)
		if !(d.relative <= allowed) {
			return relative, fmt.Sprintf("%s[%d] is %.9g, the reference says %.9g (relative error %.3g, allowed %.3g)",
				a.Name, d.at, d.got, d.want, d.relative, allowed)
		}
		got, want = got[padded(a.Bytes):], want[padded(a.Bytes):]
	}
	return relative, ""
}

// Memory is shared with a process in which kernels run. Its content is only trusted at the moment of a comparison.
type Memory struct {
	// File is passed to the process.
	File  *os.File
	bytes []byte
}

// NewMemory returns empty memory.
func NewMemory() (*Memory, error) {
	fd, err := unix.MemfdCreate("answers", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for answers: %w", err)
	}
	m := &Memory{File: os.NewFile(uintptr(fd), "answers")}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return nil, errors.Join(fmt.Errorf("memory for answers: %w", err), m.Close())
	}
	return m, nil
}

// Grow increases the size of the memory to at least size. Memory never shrinks, because a process could then
// invalidate pages being read here.
func (m *Memory) Grow(size int64) error {
	if size <= int64(len(m.bytes)) {
		return nil
	}
	if err := m.File.Truncate(size); err != nil {
		return fmt.Errorf("memory for answers: %d bytes: %w", size, err)
	}
	all, err := unix.Mmap(int(m.File.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("memory for answers: %w", err)
	}
	err = m.unmap()
	m.bytes = all
	return err
}

// Clear zeroes the memory and releases its pages.
func (m *Memory) Clear() error {
	err := unix.Fallocate(int(m.File.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.bytes)))
	if err != nil {
		return fmt.Errorf("clearing the memory for answers: %w", err)
	}
	return nil
}

// Slot returns the memory of an execution's outputs.
func (m *Memory) Slot(k int, slotBytes int64) []byte {
	return m.bytes[int64(k)*slotBytes : int64(k+1)*slotBytes]
}

// Bytes returns the whole memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Close releases the memory.
func (m *Memory) Close() error { return errors.Join(m.unmap(), m.File.Close()) }

func (m *Memory) unmap() error {
	if m.bytes == nil {
		return nil
	}
	all := m.bytes
	m.bytes = nil
	return unix.Munmap(all)
}
