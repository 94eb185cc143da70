// This file compares the outputs of kernels with those of the reference. The outputs are in memory shared with the
// kernels' process, while the reference runs in a different process.

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/array"
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
	Elements int64       `json:"elements"`
	Bytes    int64       `json:"bytes"`
	DType    array.DType `json:"dtype"`
	Role     int32       `json:"role"`
	// Tolerance and Rounding are the parts of the tolerance of an output; see tolerance.Output.
	Tolerance float64 `json:"tolerance"`
	Rounding  float64 `json:"rounding"`
	// Most is the largest number that a count holds; zero for other arguments.
	Most int64 `json:"most"`
}

// compare returns the difference between a kernel's output and the reference, and the allowed difference.
func (a *Arg) compare(got, want []byte, growth float64) (d difference, allowed float64) {
	x, y := &array.Array{DType: a.DType, Data: got}, &array.Array{DType: a.DType, Data: want}
	o := tolerance.Tolerance{Sums: a.Tolerance, Rounding: a.Rounding}
	if a.DType.IsFloat() {
		allowed = o.Times(growth)
		return compare(x, y, allowed), allowed
	}
	if d = compareExactly(x, y); d.relative == 0 || !isRounded(a.DType) {
		return d, 0
	}
	d = compareSlowly(x, y)
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

// Check returns an error if a harness's description of a workload is invalid.
func (w *Workload) Check() error {
	if len(w.Args) < 1 || len(w.Args) > maxArgs {
		return fmt.Errorf("the workload has %d arguments, not 1 to %d", len(w.Args), maxArgs)
	}
	for _, a := range w.Args {
		switch {
		case a.Role < Input || a.Role > Output, a.DType < 1 || a.DType > array.Bool:
			return fmt.Errorf("argument %q has role %d and type %d", a.Name, a.Role, a.DType)
		case a.Elements < 0 || a.Elements > maxArgBytes || a.Bytes != a.Elements*a.DType.Bytes() || a.Bytes > maxArgBytes:
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

// difference is the largest difference between two tensors.
type difference struct {
	// relative to the largest |want|; infinite if only one of two elements is NaN or infinite, or if integers differ.
	relative float64
	// at is the index of an element with that difference, and got and want its values; set only if it exceeds
	// the tolerance.
	at        int64
	got, want float64
	// largest is the largest finite |want|, set if elements were compared one by one.
	largest float64
}

// isRounded reports whether integers of a type may result from rounding floats, unlike indices and conditions.
func isRounded(d array.DType) bool { return d < array.Int64 || d == array.Uint8 || d == array.Uint16 }

// poison fills the gaps between elements on both sides.
const poison = 0xFFFFFFFF

// compare compares floats.
func compare(got, want *array.Array, tolerance float64) difference {
	if got.DType == array.Float32 {
		if relative, ok := scan(float32s(got.Data), float32s(want.Data)); ok && relative <= tolerance {
			return difference{relative: relative}
		}
	}
	return compareSlowly(got, want)
}

func compareExactly(got, want *array.Array) difference {
	if bytes.Equal(got.Data, want.Data) {
		return difference{}
	}
	size := want.DType.Bytes()
	for i := range int64(len(want.Data)) / size {
		if !bytes.Equal(got.Data[i*size:(i+1)*size], want.Data[i*size:(i+1)*size]) {
			return difference{relative: math.Inf(1), at: i, got: got.Float(i), want: want.Float(i)}
		}
	}
	return difference{} // they became equal meanwhile
}

// float32s returns the bits of elements. Slots are aligned.
func float32s(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

const infinity = 0x7F800000

// scan is the fast path for finite values, whose magnitudes sort like their bits. ok is false if a value is
// not finite, or if want is all zeros.
func scan(got, want []uint32) (relative float64, ok bool) {
	var worst, largest uint32
	got = got[:len(want)]
	for i, w := range want {
		g := got[i]
		if g == w && w == poison {
			continue
		}
		worst = max(worst, math.Float32bits(math.Float32frombits(g)-math.Float32frombits(w))&^(1<<31))
		largest = max(largest, w&^(1<<31))
	}
	if worst >= infinity || largest >= infinity || largest == 0 {
		return 0, false
	}
	return float64(math.Float32frombits(worst)) / float64(math.Float32frombits(largest)), true
}

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

func compareSlowly(got, want *array.Array) difference {
	largest, worst := 0.0, difference{relative: -1}
	for i := range int64(len(want.Data)) / want.DType.Bytes() {
		a, b := got.Float(i), want.Float(i)
		if finite(b) {
			largest = max(largest, math.Abs(b))
		}
		switch {
		case a == b || math.IsNaN(a) && math.IsNaN(b):
		case !finite(a) || !finite(b):
			return difference{relative: math.Inf(1), at: i, got: a, want: b}
		case math.Abs(a-b) > worst.relative:
			worst = difference{relative: math.Abs(a - b), at: i, got: a, want: b}
		}
	}
	worst.largest = largest
	switch {
	case worst.relative < 0:
		return difference{}
	case largest == 0:
		worst.relative = math.Inf(1)
	default:
		worst.relative /= largest
	}
	return worst
}

// judge verifies the outputs of one process. The process itself has no reference data.
type judge struct {
	*results
	memory *Memory
	// set is the index of the current input data.
	set int
	// verdicts holds the verdicts by kernel.
	verdicts map[int]*verdict
}

// verdict is the result of verifying a kernel since its turn started.
type verdict struct {
	// asked counts the verifications. wrong describes an error, or is empty.
	asked    int
	wrong    string
	relative float64
	// growth is the multiple of the tolerance that the kernel declares.
	growth float64
}

// newJudge sizes the memory shared with a process for a number of executions' outputs.
func newJudge(r *results, memory *Memory, slots int) (*judge, error) {
	if err := memory.Grow(r.SlotBytes() * int64(slots)); err != nil {
		return nil, err
	}
	return &judge{results: r, memory: memory, verdicts: map[int]*verdict{}}, nil
}

// begin lets a process continue after it has described the workload.
func (j *judge) begin(proc *process, limit time.Duration) error {
	workload, err := proc.workload(limit)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(*workload, j.Workload) {
		return &infraError{"its workload is not the one of the reference's results"}
	}
	return proc.send(command{op: cmdContinue, seed: j.change()})
}

// seed returns the seed of the current input data.
func (j *judge) seed() uint64 { return j.results.seed(j.set) }

// change selects new input data and returns their seed. A candidate is timed on other data than it was
// verified on, and cannot predict either.
func (j *judge) change() uint64 {
	j.set = (j.set + 1 + rand.IntN(practiceSets-1)) % practiceSets
	return j.seed()
}

// verify verifies submitted outputs and sends the result.
func (j *judge) verify(proc *process, e event) error {
	v := j.verdicts[e.Index]
	if v == nil {
		v = &verdict{}
		j.verdicts[e.Index] = v
	}
	relative, message := j.Judge(j.memory.Slot(0, j.SlotBytes()), j.results.set(j.set), e.Growth)
	v.asked++
	v.growth = e.Growth
	v.relative = max(v.relative, relative)
	answer := command{op: cmdContinue}
	if message != "" {
		v.wrong, answer.op = message, cmdWrong
	}
	answer.seed = j.change()
	return proc.send(answer)
}

// minVerdicts is the minimum number of verifications of a correct kernel: before and after its samples.
const minVerdicts = 2

// of returns the verdict on a kernel. ok is false if the harness's status contradicts it.
func (j *judge) of(kernel int, status string) (v verdict, ok bool) {
	if found := j.verdicts[kernel]; found != nil {
		v = *found
	}
	switch status {
	case "ok":
		return v, v.wrong == "" && v.asked >= minVerdicts
	case "wrong":
		return v, v.wrong != ""
	}
	return v, status == "overrun"
}
