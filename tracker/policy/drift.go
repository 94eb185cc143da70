package policy

import (
	"cmp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Drift defines the thresholds and intervals of the judgement. Zero fields have defaults.
type Drift struct {
	// Remeasure is the relative change of a device beyond which measurements made meanwhile are repeated. Default
	// 0.03.
	Remeasure float64
	// Quarantine is the slowdown relative to the reference beyond which a device is quarantined. Default 0.08.
	Quarantine float64
	// Noise is the tolerated standard deviation of a calibration's samples relative to their median. Default 0.05.
	Noise float64
	// Interval is the time between calibrations of an idle device. Default 5 min. A busy device has up to four times
	// as long.
	Interval time.Duration
	// Confirm is the time to the next calibration after one that was not calm, and between a new device's first ones.
	// Default 10 s.
	Confirm time.Duration
	// Settle is how long a device must go without a calm calibration to count as noisy. Default 5 min.
	Settle time.Duration
	// FirstProbe is the length of a first quarantine before the device is probed. It doubles with each further one up
	// to LongestProbe, and starts over once the device has been well for LongestProbe. Defaults 1 min and 1 h.
	FirstProbe, LongestProbe time.Duration
}

// WithDefaults returns p with defaults in place of zero fields.
func (p Drift) WithDefaults() Drift {
	for _, f := range []struct {
		value     *float64
		byDefault float64
	}{{&p.Remeasure, 0.03}, {&p.Quarantine, 0.08}, {&p.Noise, 0.05}} {
		*f.value = cmp.Or(*f.value, f.byDefault)
	}
	for _, f := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{{&p.Interval, 5 * time.Minute}, {&p.Confirm, 10 * time.Second}, {&p.Settle, 5 * time.Minute}, {&p.FirstProbe, time.Minute}, {&p.LongestProbe, time.Hour}} {
		*f.value = cmp.Or(*f.value, f.byDefault)
	}
	return p
}

// SummarizeCalibration computes the figures of one calibration. Each of its sample lists must have at least one
// element.
func SummarizeCalibration(r *tilthv1.CalibrationReport, at time.Time) *tilthv1.CalibrationFigures {
	compute, computeNoise := stats.Steady(r.GetComputeSeconds())
	memory, memoryNoise := stats.Steady(r.GetMemorySeconds())
	return &tilthv1.CalibrationFigures{
		ComputeSeconds: compute, MemorySeconds: memory, Noise: max(computeNoise, memoryNoise), At: timestamppb.New(at),
		Impairment: strings.Join(r.GetSurroundings().GetImpairments(), " and "),
	}
}

// median returns the componentwise median of two or more calibrations' figures.
func median(list []*tilthv1.CalibrationFigures) *tilthv1.CalibrationFigures {
	var compute, memory, noise []float64
	for _, f := range list {
		compute, memory, noise = append(compute, f.GetComputeSeconds()), append(memory, f.GetMemorySeconds()), append(noise, f.GetNoise())
	}
	return &tilthv1.CalibrationFigures{
		ComputeSeconds: stats.Of(compute).Median, MemorySeconds: stats.Of(memory).Median, Noise: stats.Of(noise).Median,
		At: list[len(list)-1].GetAt(),
	}
}

// DriftOf returns by what fraction f is slower than than, the larger of compute and memory. It is negative if both are
// faster.
func DriftOf(f, than *tilthv1.CalibrationFigures) float64 {
	return max(f.GetComputeSeconds()/than.GetComputeSeconds(), f.GetMemorySeconds()/than.GetMemorySeconds()) - 1
}

// change returns by what fraction f differs from from in either direction, the larger of compute and memory.
func change(f, from *tilthv1.CalibrationFigures) float64 {
	return max(DriftOf(f, from), -(min(f.GetComputeSeconds()/from.GetComputeSeconds(), f.GetMemorySeconds()/from.GetMemorySeconds()) - 1))
}

// followed is the weight of a calm calibration in the level. It tracks changes over the day within about an hour.
const followed = 0.125

// follow moves the level towards a calm calibration.
func follow(level, f *tilthv1.CalibrationFigures) {
	level.ComputeSeconds += followed * (f.GetComputeSeconds() - level.GetComputeSeconds())
	level.MemorySeconds += followed * (f.GetMemorySeconds() - level.GetMemorySeconds())
	level.Noise, level.At = f.GetNoise(), f.GetAt()
}
