package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/calibration"
)

// Kernels are fixed work that is timed; see calibration.Kernels.
type Kernels interface {
	// Name identifies the work.
	Name() string
	// Run times it; when ctx ends it returns the cause.
	Run(ctx context.Context) (calibration.Times, error)
}

// WatchConfig is what a Watch needs.
type WatchConfig struct {
	Kernels Kernels
	// Report hands in a calibration; it retries what is worth retrying.
	Report func(context.Context, *tilthv1.ReportCalibrationRequest) error
	// Lock, when set, is held while calibrating, so that nothing else runs on this machine meanwhile.
	Lock func(context.Context) (release func(), err error)
	// Surroundings, when set, reads what the machine shows of what makes it faster or slower.
	Surroundings func(context.Context) *tilthv1.Surroundings
	Logger       *slog.Logger
}

// Watch calibrates the device when the tracker asks for it, which also judges what comes of it.
type Watch struct {
	WatchConfig
	asked chan string

	mu     sync.Mutex
	last   calibration.Times
	lastAt time.Time
	// reported counts the calibrations handed in.
	reported uint64
}

// NewWatch returns a watch, which does nothing until it runs.
func NewWatch(cfg WatchConfig) *Watch {
	return &Watch{WatchConfig: cfg, asked: make(chan string)}
}

// Ask asks for a calibration in a session, unless one is under way. It does not block.
func (w *Watch) Ask(session string) {
	select {
	case w.asked <- session:
	default:
	}
}

// Run calibrates whenever asked, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-w.asked:
			if err := w.calibrate(ctx, session); err != nil && ctx.Err() == nil {
				w.Logger.Warn("calibration failed", "error", err)
			}
		}
	}
}

func (w *Watch) calibrate(ctx context.Context, session string) error {
	times, err := w.alone(ctx)
	if err != nil {
		return err
	}
	return w.report(ctx, session, times)
}

// alone calibrates while nothing else runs on this machine.
func (w *Watch) alone(ctx context.Context) (calibration.Times, error) {
	if w.Lock != nil {
		release, err := w.Lock(ctx)
		if err != nil {
			return calibration.Times{}, err
		}
		defer release()
	}
	return w.run(ctx)
}

// run calibrates. Whoever calls it has seen to it that nothing else is timed.
func (w *Watch) run(ctx context.Context) (calibration.Times, error) {
	times, err := w.Kernels.Run(ctx)
	if err != nil {
		return times, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.lastAt = times, time.Now()
	return times, nil
}

// fresh is how old a calibration may be that stands for the present.
const fresh = 2 * time.Second

// recent is a calibration of just now, taken anew where there is none.
func (w *Watch) recent(ctx context.Context) (calibration.Times, error) {
	w.mu.Lock()
	times, age := w.last, time.Since(w.lastAt)
	w.mu.Unlock()
	if times.Compute != nil && age < fresh {
		return times, nil
	}
	return w.run(ctx)
}

func (w *Watch) report(ctx context.Context, session string, times calibration.Times) error {
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
