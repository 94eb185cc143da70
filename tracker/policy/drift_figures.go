package policy

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
