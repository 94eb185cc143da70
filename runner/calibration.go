// This file implements calibrations. They time two fixed kernels, one bound by the processor and one by memory, to
// detect drift of a device. The kernels are part of the program, so they need no compiler or artifact.

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Calibration remembers the times of the harness's calibration kernel on a device, so that each measurement
// can report how calm the device was. It is safe for concurrent use.
type Calibration struct {
	mu     sync.Mutex
	recent []float64
	// debt is the time in seconds spent waiting for a calm device and not yet compensated by measuring.
	debt float64
}

// waitShare is the share of the plans' time that may be spent waiting for a calm device and measuring again.
// If a neighbour stays, or the device is permanently slower, waiting does not help.
const waitShare = 0.125

// patience returns how much time, in seconds, the next plan may spend waiting, at most limit.
func (c *Calibration) patience(limit float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, limit-c.debt)
}

// account records the duration of a plan and the part that it spent waiting.
func (c *Calibration) account(took, spent float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.debt = max(0, c.debt+spent-waitShare*took)
}

// rememberedCalibrations bounds the history of the best time. On a device that becomes permanently slower, by
// heat or a neighbour, the reference must adapt.
const rememberedCalibrations = 512

// BestSeconds returns the lowest remembered time, or 0.
func (c *Calibration) BestSeconds() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) == 0 {
		return 0
	}
	return slices.Min(c.recent)
}

func (c *Calibration) add(seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = append(c.recent, seconds)
	if len(c.recent) > rememberedCalibrations {
		c.recent = slices.Delete(c.recent, 0, len(c.recent)-rememberedCalibrations)
	}
}

// ratio returns the larger of the calibrations before and after a measurement, relative to the best known.
func (c *Calibration) ratio(before, after float64) float64 {
	worse := max(before, after)
	best := c.BestSeconds()
	if best == 0 || worse == 0 {
		return 0
	}
	return worse / best
}

// version is the version of the kernels. Times of different versions are not comparable.
const version = 1

const (
	// samples is the number of samples per kernel, taken in turns.
	samples = 15
	// timesCache is the size of all threads' buffers relative to the last-level cache, within the following bounds.
	timesCache = 2
	minBuffer  = 16 << 20
	maxBuffer  = 128 << 20
)

// CalibrationKernels are the calibration kernels configured for a machine.
type CalibrationKernels struct {
	threads int
	// bufferBytes is the total size of the threads' buffers.
	bufferBytes int
	// cpus lists the processors of the threads; nil means any.
	cpus []int
}

// CalibrationTimes holds one calibration, in seconds per sample, in the order taken.
type CalibrationTimes struct {
	Compute, Memory []float64
}

// CalibrationChange returns the relative difference between two calibrations, the larger of the two kernels and in
// either direction: 0.03 is 3 %.
func CalibrationChange(from, to CalibrationTimes) float64 {
	return max(change(from.Compute, to.Compute), change(from.Memory, to.Memory))
}

func change(from, to []float64) float64 {
	before, _ := stats.Steady(from)
	after, _ := stats.Steady(to)
	return math.Abs(after/before - 1)
}

// NewCalibrationKernels returns the kernels for a machine: the number of threads that it measures with, the size of
// its last-level cache (0 if unknown), and the logical processors to use (nil means any).
func NewCalibrationKernels(threads int, cacheBytes int64, cpus []int) *CalibrationKernels {
	threads = max(1, min(threads, runtime.GOMAXPROCS(0)))
	return &CalibrationKernels{threads: threads, bufferBytes: int(min(max(timesCache*cacheBytes, minBuffer), maxBuffer)), cpus: cpus}
}

// Name identifies the kernels, including the compiler. Only times with the same name are comparable.
func (k *CalibrationKernels) Name() string {
	name := fmt.Sprintf("calibration-%d %s/%s threads=%d bytes=%d", version, runtime.Version(), runtime.GOARCH, k.threads, k.bufferBytes)
	if len(k.cpus) > 0 {
		name += " cpus=" + target.FormatCPUs(k.cpus)
	}
	return name
}

// Run times the kernels in turns, which takes about 100 ms. If ctx ends, it returns the cause.
func (k *CalibrationKernels) Run(ctx context.Context) (times CalibrationTimes, err error) {
	buffer, err := unix.Mmap(-1, 0, k.bufferBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return times, fmt.Errorf("calibration: %d bytes of memory: %w", k.bufferBytes, err)
	}
	_ = unix.Madvise(buffer, unix.MADV_HUGEPAGE) // fewer page walks give steadier times, if large pages are available
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
		c, m := team.run(calculate), team.run(read)
		if n > 0 { // the first sample wakes the threads
			times.Compute, times.Memory = append(times.Compute, c.Seconds()), append(times.Memory, m.Seconds())
		}
	}
	return times, nil
}

// steps of a compute sample take about two milliseconds.
const steps = 1_000_000

// compute runs multiply-adds in registers, in four dependent chains. It is sensitive to the processor's clock
// and to lost CPU time only.
func compute(seed float64) float64 {
	a, b, c, d := seed, seed+1, seed+2, seed+3
	for range steps {
		a = a*0.5 + seed
		b = b*0.5 + seed
		c = c*0.5 + seed
		d = d*0.5 + seed
	}
	return math.Max(math.Max(a, b), math.Max(c, d))
}

// read sums a buffer larger than all caches. It is sensitive to the memory and to neighbours that use it.
func read(words []uint64) (sum uint64) {
	var a, b, c, d uint64
	for ; len(words) >= 32; words = words[32:] {
		w := words[:32]
		// One word per cache line makes memory, not additions, the bottleneck.
		a += w[0]
		b += w[8]
		c += w[16]
		d += w[24]
	}
	return a + b + c + d
}

// work processes a thread's part of the buffer. Its result prevents the compiler from removing it.
type work func(words []uint64) uint64

func fill(words []uint64) uint64 {
	for i := range words {
		words[i] = uint64(i)
	}
	return 0
}

func calculate(words []uint64) uint64 { return uint64(compute(float64(words[0]&1) + 1)) }

// team is a group of threads that run the same work simultaneously.
type team struct {
	members []chan work
	done    sync.WaitGroup
	ended   sync.WaitGroup
}

// newTeam starts threads on some processors (nil means any), each with a part of the buffer.
func newTeam(threads int, buffer []byte, cpus []int) (*team, error) {
	t, begun := &team{}, make(chan error)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&buffer[0])), len(buffer)/8)
	part := len(words) / threads
	for n := range threads {
		orders := make(chan work)
		t.members = append(t.members, orders)
		t.ended.Go(func() {
			err := target.RunOn(cpus, func() error {
				begun <- nil
				t.follow(orders, words[n*part:(n+1)*part])
				return nil
			})
			if err != nil { // the thread may not be allowed to run there
				begun <- err
			}
		})
	}
	var failed error
	for range threads {
		failed = errors.Join(failed, <-begun)
	}
	if failed != nil {
		t.stop()
		return nil, failed
	}
	return t, nil
}

// follow is the loop of one thread.
func (t *team) follow(orders <-chan work, words []uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for w := range orders {
		words[0] += w(words) & 1
		t.done.Done()
	}
}

// run runs work on all threads and returns the time until the last one is done.
func (t *team) run(w work) time.Duration {
	t.done.Add(len(t.members))
	begin := time.Now()
	for _, orders := range t.members {
		orders <- w
	}
	t.done.Wait()
	return time.Since(begin)
}

func (t *team) stop() {
	for _, orders := range t.members {
		close(orders)
	}
	t.ended.Wait()
}

// Kernels is timed fixed work; see CalibrationKernels.
type Kernels interface {
	// Name identifies the work.
	Name() string
	// Run times the work. If ctx ends, it returns the cause.
	Run(ctx context.Context) (CalibrationTimes, error)
}

// WatchConfig configures a Watch.
type WatchConfig struct {
	Kernels Kernels
	// Report submits a calibration and retries transient errors.
	Report func(context.Context, *tilthv1.ReportCalibrationRequest) error
	// Lock, if set, is held while calibrating, so that nothing else runs on this machine meanwhile.
	Lock func(context.Context) (release func(), err error)
	// Surroundings, if set, reads conditions that affect the machine's speed.
	Surroundings func(context.Context) *tilthv1.Surroundings
	Logger       *slog.Logger
}

// Watch calibrates the device when the tracker requests it. The tracker judges the results.
type Watch struct {
	WatchConfig
	asked chan string

	mu     sync.Mutex
	last   CalibrationTimes
	lastAt time.Time
	// reported counts the submitted calibrations.
	reported uint64
}

// NewWatch returns a watch, which is idle until Run is called.
func NewWatch(cfg WatchConfig) *Watch {
	return &Watch{WatchConfig: cfg, asked: make(chan string)}
}

// Ask requests a calibration in a session, unless one is in progress. It does not block.
func (w *Watch) Ask(session string) {
	select {
	case w.asked <- session:
	default:
	}
}

// Run calibrates on request until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-w.asked:
			times, err := w.alone(ctx)
			if err == nil {
				err = w.report(ctx, session, times)
			}
			if err != nil && ctx.Err() == nil {
				w.Logger.Warn("calibration failed", "error", err)
			}
		}
	}
}

// alone calibrates while nothing else runs on this machine.
func (w *Watch) alone(ctx context.Context) (CalibrationTimes, error) {
	if w.Lock != nil {
		release, err := w.Lock(ctx)
		if err != nil {
			return CalibrationTimes{}, err
		}
		defer release()
	}
	return w.run(ctx)
}

// run calibrates. The caller must make sure that nothing else is timed.
func (w *Watch) run(ctx context.Context) (CalibrationTimes, error) {
	times, err := w.Kernels.Run(ctx)
	if err != nil {
		return times, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.lastAt = times, time.Now()
	return times, nil
}

// maxCalibrationAge is the maximum age of a calibration that represents the present.
const maxCalibrationAge = 2 * time.Second

// recent returns a fresh calibration, taken anew if necessary.
func (w *Watch) recent(ctx context.Context) (CalibrationTimes, error) {
	w.mu.Lock()
	times, age := w.last, time.Since(w.lastAt)
	w.mu.Unlock()
	if times.Compute != nil && age < maxCalibrationAge {
		return times, nil
	}
	return w.run(ctx)
}

func (w *Watch) report(ctx context.Context, session string, times CalibrationTimes) error {
	w.mu.Lock()
	w.reported++
	number := w.reported
	w.mu.Unlock()
	report := &tilthv1.CalibrationReport{
		Kernels: w.Kernels.Name(), ComputeSeconds: times.Compute, MemorySeconds: times.Memory, Number: number,
	}
	if w.Surroundings != nil {
		report.Surroundings = w.Surroundings(ctx)
	}
	return w.Report(ctx, &tilthv1.ReportCalibrationRequest{Session: session, Report: report})
}
