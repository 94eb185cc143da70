package farm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/filesystem"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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
	return daily(ratesPath(cacheDir, t), t, time.Now(), func() (rates roofline.Rates, err error) {
		release, err := lock.Time(ctx)
		if err != nil {
			return rates, err
		}
		defer release()
		return by.Measure(ctx, tc, t, scratch, nil)
	})
}

// measuredAnew is the minimum time between measurements. Later ones correct a measurement on a busy machine.
const measuredAnew = 10 * time.Minute

// ratesOfDay is the cached maximum of a day's measurements.
type ratesOfDay struct {
	// Day is the day in UTC, such as 2026-03-01. At is the time of the latest measurement.
	Day   string          `json:"day"`
	At    time.Time       `json:"at"`
	Rates json.RawMessage `json:"rates"`
	// Class is the device class.
	Class string `json:"class"`
	CPU   bool   `json:"cpu"`
}

// KnownRates are the rates of a machine. Its name begins the fingerprints of its targets, with each compiler.
type KnownRates struct {
	Machine string
	CPU     bool // rather than a GPU
	roofline.Rates
}

func knownRates(class string, cpu bool, text []byte) (k []KnownRates) {
	rates, err := roofline.Decode(text)
	if n := strings.LastIndexByte(class, '-'); err == nil && n > 0 {
		k = append(k, KnownRates{class[:n], cpu, rates}) // without the digest
	}
	return k
}

// RatesIn returns the rates in a folder of caches.
func RatesIn(cacheDir string) (all []KnownRates) {
	files, _ := filepath.Glob(filepath.Join(cacheDir, "rates", "*.json"))
	for _, file := range files {
		var kept ratesOfDay
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &kept) == nil {
			all = append(all, knownRates(kept.Class, kept.CPU, kept.Rates)...)
		}
	}
	return all
}

// RatesOf returns the rates of a device's classes.
func RatesOf(classes []*tilthv1.DeviceClass) (all []KnownRates) {
	for _, c := range classes {
		if t, err := target.Decode(c.GetDescriptor_()); err == nil {
			all = append(all, knownRates(c.GetName(), t.RunsOnCPU(), c.GetMachine())...)
		}
	}
	return all
}

// ratesPath returns the path of a target's rates on this machine.
func ratesPath(cacheDir string, t *target.Target) string {
	sum := sha256.New()
	host, _ := os.Hostname() // without a name, the machine has an id or does not share the cache
	id, _ := os.ReadFile("/etc/machine-id")
	for _, part := range []string{host, string(id), t.DeviceClass()} {
		_, _ = io.WriteString(sum, part+"\x00") // writing to a hash does not fail
	}
	return filepath.Join(cacheDir, "rates", hex.EncodeToString(sum.Sum(nil))[:32]+".json")
}

// daily returns the highest rates measured today, from the file or, if its measurement is older than
// measuredAnew, from a new one. Other load only lowers the rates of a machine, so the maximum approaches its
// real limits. An unreadable or unwritable file is ignored.
func daily(path string, t *target.Target, now time.Time, measure func() (roofline.Rates, error)) (roofline.Rates, error) {
	now = now.UTC()
	day := now.Format(time.DateOnly)
	kept, at, known := readRates(path, day)
	if age := now.Sub(at); known && age >= 0 && age < measuredAnew {
		return kept, nil
	}
	rates, err := measure()
	switch {
	case err != nil && known:
		return kept, nil
	case err != nil:
		return rates, err
	case known:
		rates = rates.Max(kept)
	}
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = filesystem.WriteFile(path, func(w io.Writer) error { // on failure, the next command measures again
			return json.NewEncoder(w).Encode(ratesOfDay{Day: day, At: now, Rates: rates.Encode(), Class: t.DeviceClass(), CPU: t.RunsOnCPU()})
		})
	}
	return rates, nil
}

// readRates returns the rates of a day and the time of the latest measurement.
func readRates(path, day string) (rates roofline.Rates, at time.Time, known bool) {
	var kept ratesOfDay
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &kept) != nil || kept.Day != day {
		return rates, at, false
	}
	rates, err := roofline.Decode(kept.Rates)
	return rates, kept.At, err == nil
}
