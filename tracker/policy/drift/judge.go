package drift

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// referenceOf is how many calm calibrations the reference is the median of.
	referenceOf = 5
	// believed is how many calibrations on end must agree that something is wrong.
	believed = 3
	// busyFactor is how many times as long a busy device is left alone.
	busyFactor = 4
)

// Verdict is what follows from a calibration.
type Verdict struct {
	// Suspect says why what was measured since the calibration before the disturbance is to be measured again; empty =
	// it is not.
	Suspect string
	// Quarantine says why the device is to be given no work, for Probe; empty = it may, unless it is in quarantine and
	// not released.
	Quarantine string
	Probe      time.Duration
	// Release ends a quarantine.
	Release bool
	// Next is the time until the next calibration.
	Next time.Duration
}

// Judge takes a calibration into what is known of a device and says what follows. Quarantined says that the device is
// being tried again.
func (p Policy) Judge(c *tilthv1.DeviceCalibration, kernels string, f *tilthv1.CalibrationFigures, quarantined bool) Verdict {
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

// learn waits for the calm calibrations that make the reference.
func (p Policy) learn(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) Verdict {
	if f.GetNoise() > p.Noise {
		disturb(c, f)
		if reason := p.noisy(c); reason != "" {
			return p.quarantine(c, f, reason, "")
		}
		return Verdict{Next: p.again(c)}
	}
	settle(c, f)
	if c.Learning = append(c.Learning, f); len(c.Learning) < referenceOf {
		return Verdict{Next: p.Confirm}
	}
	c.Reference = median(c.Learning)
	c.Level = proto.CloneOf(c.Reference)
	c.Learning = nil
	return Verdict{Next: p.Interval}
}

// calm is the usual case.
func (p Policy) calm(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) Verdict {
	settle(c, f)
	follow(c.Level, f)
	if d := Drift(c.GetLevel(), c.GetReference()); d > p.Quarantine {
		return p.quarantine(c, f, fmt.Sprintf("it drifted: it is %s slower than its reference, over %s", percent(d), percent(p.Quarantine)), "")
	}
	return Verdict{Next: p.Interval}
}

// disturbed waits until three calibrations on end were not calm, and then decides by their median. Figures of noisy
// ones say nothing of the device's speed: while all three are, only the noise is judged, which takes minutes.
func (p Policy) disturbed(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) Verdict {
	if disturb(c, f); c.Disturbed < believed {
		return Verdict{Next: p.Confirm}
	}
	now := median(c.Recent)
	step, drift := change(now, c.GetLevel()), Drift(now, c.GetReference())
	var suspect string
	if step > p.Remeasure {
		suspect = fmt.Sprintf("the device changed by %s, over %s", percent(step), percent(p.Remeasure))
	}
	switch noisy := p.noisy(c); {
	case noisy != "":
		return p.quarantine(c, f, noisy, suspect)
	case p.least(c) > p.Noise:
		return Verdict{Next: p.again(c)}
	case drift > p.Quarantine:
		return p.quarantine(c, f, fmt.Sprintf("it is %s slower than its reference, over %s", percent(drift), percent(p.Quarantine)), suspect)
	}
	settle(c, f)
	if suspect != "" {
		c.Level = now
	}
	if Drift(now, c.GetReference()) < -p.Remeasure {
		c.Reference = proto.CloneOf(now) // it was learnt on a device that was disturbed
	}
	return Verdict{Suspect: suspect, Next: p.Interval}
}

// impaired waits until a device says three times on end that something impairs it, or once more of one in quarantine.
// Its figures say nothing of what it can do, and no reference is made of them.
func (p Policy) impaired(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures, quarantined bool) Verdict {
	disturb(c, f)
	if quarantined {
		return p.quarantine(c, f, "it "+f.GetImpairment()+" still", "")
	}
	well := func(f *tilthv1.CalibrationFigures) bool { return f.GetImpairment() == "" }
	if len(c.GetRecent()) < believed || slices.ContainsFunc(c.GetRecent(), well) {
		return Verdict{Next: p.Confirm}
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

// again is the time until the next calibration of a device that may be noisy: it doubles, so that a device at work is
// not held up by them.
func (p Policy) again(c *tilthv1.DeviceCalibration) time.Duration {
	return min(p.Confirm<<min(c.GetDisturbed()-1, 8), max(p.Settle/5, p.Confirm))
}

// least is the noise that each of the last calibrations had at least.
func (p Policy) least(c *tilthv1.DeviceCalibration) float64 {
	least := c.GetRecent()[0].GetNoise()
	for _, f := range c.GetRecent() {
		least = min(least, f.GetNoise())
	}
	return least
}

// noisy says that no calibration was calm for as long as it takes to believe that none will be; empty when one was.
func (p Policy) noisy(c *tilthv1.DeviceCalibration) string {
	last := c.GetRecent()[len(c.GetRecent())-1].GetAt().AsTime()
	disturbed := last.Sub(c.GetDisturbedSince().AsTime())
	if least := p.least(c); c.GetDisturbed() >= believed && disturbed >= p.Settle && least > p.Noise {
		return fmt.Sprintf("it is noisy: its samples differ by %s or more, over %s, and none of %d calibrations was calm in %s",
			percent(least), percent(p.Noise), c.GetDisturbed(), disturbed.Round(time.Second))
	}
	return ""
}

// quarantine counts a quarantine; each of several lasts twice as long as the one before.
func (p Policy) quarantine(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures, reason, suspect string) Verdict {
	if released := c.GetReleasedAt(); released != nil && f.GetAt().AsTime().Sub(released.AsTime()) > p.LongestProbe {
		c.Strikes = 0
	}
	c.Strikes++
	c.Disturbed, c.DisturbedSince = 0, nil
	wait := p.LongestProbe
	if c.Strikes < 16 {
		wait = min(p.FirstProbe<<(c.Strikes-1), p.LongestProbe)
	}
	return Verdict{Quarantine: reason, Probe: wait, Suspect: suspect, Next: wait}
}

// probe decides about a device in quarantine: by one calibration, or, since a moment's noise says little, by three
// noisy ones.
func (p Policy) probe(c *tilthv1.DeviceCalibration, f *tilthv1.CalibrationFigures) Verdict {
	switch {
	case f.GetNoise() > p.Noise:
		if disturb(c, f); c.Disturbed < believed {
			return Verdict{Next: p.Confirm}
		}
		return p.quarantine(c, f, fmt.Sprintf("it is noisy still: its samples differ by %s, over %s", percent(f.GetNoise()), percent(p.Noise)), "")
	case c.GetReference() != nil && Drift(f, c.GetReference()) > p.Quarantine:
		d := Drift(f, c.GetReference())
		return p.quarantine(c, f, fmt.Sprintf("it is %s slower than its reference still, over %s", percent(d), percent(p.Quarantine)), "")
	}
	settle(c, f)
	c.ReleasedAt, c.Recent = f.GetAt(), []*tilthv1.CalibrationFigures{f}
	if c.GetReference() == nil {
		c.Learning = append(c.Learning, f)
		return Verdict{Release: true, Next: p.Confirm}
	}
	c.Level = proto.CloneOf(f)
	return Verdict{Release: true, Next: p.Interval}
}

// Due says whether a device is to be calibrated: at its time when it is idle, and a while later when it is busy.
func (p Policy) Due(now, at time.Time, busy bool) bool {
	if busy {
		at = at.Add((busyFactor - 1) * p.Interval)
	}
	return !now.Before(at)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
