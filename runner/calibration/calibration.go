package calibration

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/cpulist"
	"github.com/tilth-dev/tilth/internal/stat"
)

// version is of the kernels: another one's times are not to be compared.
const version = 1

const (
	// samples of each kernel; they take turns.
	samples = 15
	// The buffers of all threads take so many times the last cache, within these bounds.
	timesCache  = 2
	leastBuffer = 16 << 20
	mostBuffer  = 128 << 20
)

// Kernels are the calibration kernels as they suit a machine.
type Kernels struct {
	threads int
	// bufferBytes is read by all threads together.
	bufferBytes int
	// cpus are the processors that the threads run on; nil = any.
	cpus []int
}

// Times are those of one calibration, in seconds a sample, in the order taken.
type Times struct {
	Compute, Memory []float64
}

// Change is by how much one calibration's times differ from another's, of the two kernels the larger, whichever way:
// 0.03 is 3 %.
func Change(from, to Times) float64 {
	return max(change(from.Compute, to.Compute), change(from.Memory, to.Memory))
}

func change(from, to []float64) float64 {
	before, _ := stat.Steady(from)
	after, _ := stat.Steady(to)
	return math.Abs(after/before - 1)
}

// New returns the kernels for a machine: as many threads as it measures on, the size of its last cache (0 = not
// known), and the logical processors that they run on (nil = any).
func New(threads int, cacheBytes int64, cpus []int) *Kernels {
	threads = max(1, min(threads, runtime.GOMAXPROCS(0)))
	return &Kernels{threads: threads, bufferBytes: int(min(max(timesCache*cacheBytes, leastBuffer), mostBuffer)), cpus: cpus}
}

// Name identifies the kernels: only times of the same name can be compared. The compiler is part of it.
func (k *Kernels) Name() string {
	name := fmt.Sprintf("calibration-%d %s/%s threads=%d bytes=%d", version, runtime.Version(), runtime.GOARCH, k.threads, k.bufferBytes)
	if len(k.cpus) > 0 {
		name += " cpus=" + cpulist.Format(k.cpus)
	}
	return name
}

// Run times the kernels in turns; it takes some 100 ms. When ctx ends it returns the cause.
func (k *Kernels) Run(ctx context.Context) (times Times, err error) {
	buffer, err := unix.Mmap(-1, 0, k.bufferBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return times, fmt.Errorf("calibration: %d bytes of memory: %w", k.bufferBytes, err)
	}
	_ = unix.Madvise(buffer, unix.MADV_HUGEPAGE) // fewer page walks make steadier times, where the kernel has large pages
	defer func() {
		if unmap := unix.Munmap(buffer); err == nil && unmap != nil {
			err = fmt.Errorf("calibration: %w", unmap)
		}
	}()
	team, err := newTeam(k.threads, buffer, k.cpus)
	if err != nil {
		return times, fmt.Errorf("calibration: %w", err)
	}
	defer team.stop()
	team.run(fill)
	for n := range samples + 1 {
		if ctx.Err() != nil {
			return times, context.Cause(ctx)
		}
		c, m := team.run(calculate), team.run(readOnce)
		if n > 0 { // the first wakes the threads
			times.Compute, times.Memory = append(times.Compute, c.Seconds()), append(times.Memory, m.Seconds())
		}
	}
	return times, nil
}
