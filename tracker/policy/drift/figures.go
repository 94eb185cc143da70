package drift

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/stat"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Summarize makes the figures of one calibration's samples, of which there is at least one each.
func Summarize(r *tilthv1.CalibrationReport, at time.Time) *tilthv1.CalibrationFigures {
	compute, computeNoise := stat.Steady(r.GetComputeSeconds())
	memory, memoryNoise := stat.Steady(r.GetMemorySeconds())
	return &tilthv1.CalibrationFigures{
		ComputeSeconds: compute, MemorySeconds: memory, Noise: max(computeNoise, memoryNoise), At: timestamppb.New(at),
		Impairment: strings.Join(r.GetSurroundings().GetImpairments(), " and "),
	}
}

// median takes the median of each of two or more calibrations' figures by itself.
func median(list []*tilthv1.CalibrationFigures) *tilthv1.CalibrationFigures {
	var compute, memory, noise []float64
	for _, f := range list {
		compute, memory, noise = append(compute, f.GetComputeSeconds()), append(memory, f.GetMemorySeconds()), append(noise, f.GetNoise())
	}
	return &tilthv1.CalibrationFigures{
		ComputeSeconds: stat.Of(compute).Median, MemorySeconds: stat.Of(memory).Median, Noise: stat.Of(noise).Median,
		At: list[len(list)-1].GetAt(),
	}
}

// Drift is by how much figures are slower than others, of the two the larger; negative when both are faster.
func Drift(f, than *tilthv1.CalibrationFigures) float64 {
	return max(f.GetComputeSeconds()/than.GetComputeSeconds(), f.GetMemorySeconds()/than.GetMemorySeconds()) - 1
}

// change is by how much figures differ from others, of the two the larger, whichever way.
func change(f, from *tilthv1.CalibrationFigures) float64 {
	return max(Drift(f, from), -(min(f.GetComputeSeconds()/from.GetComputeSeconds(), f.GetMemorySeconds()/from.GetMemorySeconds()) - 1))
}

// followed is the part of the way to a calm calibration that the level goes: a change of the day is followed in an
// hour or so.
const followed = 0.125

// follow brings the level nearer to a calm calibration.
func follow(level, f *tilthv1.CalibrationFigures) {
	level.ComputeSeconds += followed * (f.GetComputeSeconds() - level.GetComputeSeconds())
	level.MemorySeconds += followed * (f.GetMemorySeconds() - level.GetMemorySeconds())
	level.Noise, level.At = f.GetNoise(), f.GetAt()
}
