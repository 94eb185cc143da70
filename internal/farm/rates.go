package farm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
)

// MeasureRates measures the peak rates of this machine for each target. Targets of one class of cores must be
// adjacent and sorted by threads; they are measured with the fewest and the most threads, and interpolated
// between. Each of the two measurements takes about half a second, during which lock is held. The best rates
// of a day are cached in cacheDir and valid for ten minutes before they are measured again: figures relative
// to the limits stay comparable, and a measurement on a busy machine gets corrected.
func MeasureRates(ctx context.Context, tc *toolchain.Toolchain, targets []*target.Target, lock *hostlock.Lock, cacheDir string) ([]roofline.Rates, error) {
	if n := slices.IndexFunc(targets, func(t *target.Target) bool { return t.Model() != targets[0].Model() }); n > 0 { // another class of cores
		few, err := MeasureRates(ctx, tc, targets[:n], lock, cacheDir)
		if err != nil {
			return nil, err
		}
		more, err := MeasureRates(ctx, tc, targets[n:], lock, cacheDir)
		return slices.Concat(few, more), err
	}
	first, last := targets[0], targets[len(targets)-1]
	by, err := registry.Of(first)
	if err != nil {
		return nil, fmt.Errorf("measuring the machine: %w", err)
	}
	few, err := measureRates(ctx, by, tc, first, lock, cacheDir)
	if err != nil {
		return nil, err
	}
	many := few
	if last.Threads() > first.Threads() {
		if many, err = measureRates(ctx, by, tc, last, lock, cacheDir); err != nil {
			return nil, err
		}
	}
	rates := make([]roofline.Rates, len(targets))
	for i, t := range targets {
		rates[i] = by.Between(backend.Measured{Target: first, Rates: few}, backend.Measured{Target: last, Rates: many}, t)
	}
	rates[0], rates[len(rates)-1] = few, many
	return rates, nil
}

func measureRates(ctx context.Context, by backend.Backend, tc *toolchain.Toolchain, t *target.Target, lock *hostlock.Lock, cacheDir string) (rates roofline.Rates, err error) {
	scratch, err := os.MkdirTemp("", "tilth-rates-")
	if err != nil {
		return rates, fmt.Errorf("measuring the machine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if device := by.Device(t); device != nil && device.ID != "" {
		lock = lock.On(device.ID)
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return rates, err
	}
	defer release()
	return daily(ratesPath(cacheDir, t), time.Now(), func() (roofline.Rates, error) { return by.Measure(ctx, tc, t, scratch, nil) })
}
