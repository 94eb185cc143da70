package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
