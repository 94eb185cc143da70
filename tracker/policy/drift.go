// This file judges devices by their calibrations: whether a device still performs as before, and the consequences if
// it does not.
//
// A device is compared with two sets of figures. The reference is the median of its first calm calibrations and stays
// fixed; the distance from it decides whether the device is usable at all. The level is the device's current
// performance. It follows calm calibrations slowly, so gradual drift over a day, from heat or a permanent neighbour,
// is no event, while a sudden change is. Only a change between two calm calibrations casts doubt on the measurements
// between them.
//
// Noise is common on shared machines and usually lasts for seconds. A noisy calibration is soon followed by others.
// Three in a row are accepted if they agree on a different speed. A device is called noisy only if no calibration was
// calm for minutes, whether it has just joined or has measured well for days. Disturbances only lengthen samples, so
// the figures are lower quartiles, and noise is that of the lower half. A device that reports an impairment, such as a
// card throttled by heat, is believed after three calibrations as well.

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
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
	p.Remeasure = cmp.Or(p.Remeasure, 0.03)
	p.Quarantine = cmp.Or(p.Quarantine, 0.08)
	p.Noise = cmp.Or(p.Noise, 0.05)
	p.Interval = cmp.Or(p.Interval, 5*time.Minute)
	p.Confirm = cmp.Or(p.Confirm, 10*time.Second)
	p.Settle = cmp.Or(p.Settle, 5*time.Minute)
	p.FirstProbe = cmp.Or(p.FirstProbe, time.Minute)
	p.LongestProbe = cmp.Or(p.LongestProbe, time.Hour)
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

const (
	// referenceOf is the number of calm calibrations whose median is the reference.
	referenceOf = 5
	// believed is the number of consecutive calibrations that must agree on a problem.
	believed = 3
	// busyFactor is how many times longer the interval is for a busy device.
	busyFactor = 4
)

// DriftVerdict is the consequence of a calibration.
type DriftVerdict struct {
	// Suspect is the reason why measurements since the last calm calibration must be repeated; empty if they stand.
	Suspect string
	// Quarantine is the reason why the device must get no work for Probe. If empty, the device may get work, unless it
	// is in quarantine and Release is false.
	Quarantine string
	Probe      time.Duration
	// Release ends a quarantine.
	Release bool
	// Next is the time until the next calibration.
	Next time.Duration
}

// Judge adds a calibration to the state of a device and returns its consequences. quarantined reports that the device
// is being probed.
func (p Drift) Judge(c *tilthv1.DeviceCalibration, kernels string, f *tilthv1.CalibrationFigures, quarantined bool) DriftVerdict {
	if c.GetKernels() != kernels {
		proto.Reset(c)
		c.Kernels = kernels
	}
	c.Recent = append(c.Recent, f)
	if extra := len(c.Recent) - believed; extra > 0 {
		c.Recent = slices.Delete(c.Recent, 0, extra)
	}
	if f.GetImpairment() != "" {
		return p.impaired(c, f, quarantined)
	}
	if quarantined {
		return p.probe(c, f)
	}
	if c.GetReference() == nil {
		return p.learn(c, f)
	}
	if f.GetNoise() <= p.Noise && change(f, c.GetLevel()) <= p.Remeasure {
		return p.calm(c, f)
	}
	return p.disturbed(c, f)
}

// learn collects the calm calibrations that form the reference.
func (p Drift) learn(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) DriftVerdict {
	if f.GetNoise() > p.Noise {
		disturb(c, f)
		if reason := p.noisy(c); reason != "" {
			return p.quarantine(c, f, reason, "")
		}
		return DriftVerdict{Next: p.again(c)}
	}
	settle(c, f)
	if c.Learning = append(c.Learning, f); len(c.Learning) < referenceOf {
		return DriftVerdict{Next: p.Confirm}
	}
	c.Reference = median(c.Learning)
	c.Level = proto.CloneOf(c.Reference)
	c.Learning = nil
	return DriftVerdict{Next: p.Interval}
}

// calm handles the usual case.
func (p Drift) calm(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) DriftVerdict {
	settle(c, f)
	follow(c.Level, f)
	if d := DriftOf(c.GetLevel(), c.GetReference()); d > p.Quarantine {
		return p.quarantine(c, f, fmt.Sprintf("it drifted: it is %s slower than its reference, over %s", percent(d), percent(p.Quarantine)), "")
	}
	return DriftVerdict{Next: p.Interval}
}

// disturbed waits for three consecutive calibrations that were not calm and then decides by their median. Noisy
// figures say nothing about speed: while all three are noisy, it judges only the noise, which takes minutes.
func (p Drift) disturbed(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) DriftVerdict {
	if disturb(c, f); c.Disturbed < believed {
		return DriftVerdict{Next: p.Confirm}
	}
	now := median(c.Recent)
	step, drift := change(now, c.GetLevel()), DriftOf(now, c.GetReference())
	var suspect string
	if step > p.Remeasure {
		suspect = fmt.Sprintf("the device changed by %s, over %s", percent(step), percent(p.Remeasure))
	}
	switch noisy := p.noisy(c); {
	case noisy != "":
		return p.quarantine(c, f, noisy, suspect)
	case p.min(c) > p.Noise:
		return DriftVerdict{Next: p.again(c)}
	case drift > p.Quarantine:
		return p.quarantine(c, f, fmt.Sprintf("it is %s slower than its reference, over %s", percent(drift), percent(p.Quarantine)), suspect)
	}
	settle(c, f)
	if suspect != "" {
		c.Level = now
	}
	if DriftOf(now, c.GetReference()) < -p.Remeasure {
		c.Reference = proto.CloneOf(now) // the reference was learned on a disturbed device
	}
	return DriftVerdict{Suspect: suspect, Next: p.Interval}
}

// impaired waits for three consecutive calibrations with an impairment, or one if the device is in quarantine. Figures
// of an impaired device never enter the reference.
func (p Drift) impaired(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures, quarantined bool) DriftVerdict {
	disturb(c, f)
	if quarantined {
		return p.quarantine(c, f, "it "+f.GetImpairment()+" still", "")
	}
	well := func(f *tilthv1.CalibrationFigures) bool { return f.GetImpairment() == "" }
	if len(c.GetRecent()) < believed || slices.ContainsFunc(c.GetRecent(), well) {
		return DriftVerdict{Next: p.Confirm}
	}
	return p.quarantine(c, f, "it "+f.GetImpairment(), "the device "+f.GetImpairment())
}

// disturb counts a calibration that was not calm.
func disturb(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) {
	if c.Disturbed++; c.DisturbedSince == nil {
		c.DisturbedSince = f.GetAt()
	}
}

// settle ends a disturbance.
func settle(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) {
	c.Disturbed, c.DisturbedSince, c.CalmAt = 0, nil, f.GetAt()
}

// again returns the delay of the next calibration of a device that may be noisy. It doubles, so that a busy device is
// not held up.
func (p Drift) again(c *tilthv1.DeviceCalibration) time.Duration {
	return min(p.Confirm<<min(c.GetDisturbed()-1, 8), max(p.Settle/5, p.Confirm))
}

// min returns the least noise of the recent calibrations.
func (p Drift) min(c *tilthv1.DeviceCalibration) float64 {
	return slices.MinFunc(c.GetRecent(), func(a, b *tilthv1.CalibrationFigures) int { return cmp.Compare(a.GetNoise(), b.GetNoise()) }).GetNoise()
}

// noisy returns why the device counts as noisy, or "" unless it has been disturbed for the settling time without
// interruption.
func (p Drift) noisy(c *tilthv1.DeviceCalibration) string {
	last := c.GetRecent()[len(c.GetRecent())-1].GetAt().AsTime()
	disturbed := last.Sub(c.GetDisturbedSince().AsTime())
	if smallest := p.min(c); c.GetDisturbed() >= believed && disturbed >= p.Settle && smallest > p.Noise {
		return fmt.Sprintf("it is noisy: its samples differ by %s or more, over %s, and none of %d calibrations was calm in %s",
			percent(smallest), percent(p.Noise), c.GetDisturbed(), disturbed.Round(time.Second))
	}
	return ""
}

// quarantine counts a quarantine. Each one lasts twice as long as the previous.
func (p Drift) quarantine(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures, reason, suspect string) DriftVerdict {
	if released := c.GetReleasedAt(); released != nil && f.GetAt().AsTime().Sub(released.AsTime()) > p.LongestProbe {
		c.Strikes = 0
	}
	c.Strikes++
	c.Disturbed, c.DisturbedSince = 0, nil
	wait := p.LongestProbe
	if c.Strikes < 16 {
		wait = min(p.FirstProbe<<(c.Strikes-1), p.LongestProbe)
	}
	return DriftVerdict{Quarantine: reason, Probe: wait, Suspect: suspect, Next: wait}
}

// probe decides about a device in quarantine: by a single calibration or, since momentary noise proves little, by
// three noisy ones.
func (p Drift) probe(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) DriftVerdict {
	switch {
	case f.GetNoise() > p.Noise:
		if disturb(c, f); c.Disturbed < believed {
			return DriftVerdict{Next: p.Confirm}
		}
		return p.quarantine(c, f, fmt.Sprintf("it is noisy still: its samples differ by %s, over %s", percent(f.GetNoise()), percent(p.Noise)), "")
	case c.GetReference() != nil && DriftOf(f, c.GetReference()) > p.Quarantine:
		d := DriftOf(f, c.GetReference())
		return p.quarantine(c, f, fmt.Sprintf("it is %s slower than its reference still, over %s", percent(d), percent(p.Quarantine)), "")
	}
	settle(c, f)
	c.ReleasedAt, c.Recent = f.GetAt(), []*tilthv1.CalibrationFigures{f}
	if c.GetReference() == nil {
		c.Learning = append(c.Learning, f)
		return DriftVerdict{Release: true, Next: p.Confirm}
	}
	c.Level = proto.CloneOf(f)
	return DriftVerdict{Release: true, Next: p.Interval}
}

// Due reports whether a device should be calibrated: at its time if idle, somewhat later if busy.
func (p Drift) Due(now, at time.Time, busy bool) bool {
	if busy {
		at = at.Add((busyFactor - 1) * p.Interval)
	}
	return !now.Before(at)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
