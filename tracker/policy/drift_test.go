package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// bench is a device and its policy, as in the tracker.
type bench struct {
	t           *testing.T
	policy      Drift
	rng         *rand.Rand
	known       *tilthv1.DeviceCalibration
	now         time.Time
	quarantined bool
	suspects    []string
	quarantines []string
	released    int
	last        DriftVerdict
	// impairment is the impairment that the device reports.
	impairment string
}

func newBench(t *testing.T) *bench {
	return &bench{
		t: t, policy: Drift{}.WithDefaults(), rng: rand.New(rand.NewPCG(1, 2)), known: &tilthv1.DeviceCalibration{},
		now: time.Unix(1_000_000, 0),
	}
}

// calibrate calibrates a device that is slower by the given factor, with one per cent of noise, and advances the clock
// to the next calibration. Each sample is passed through disturb.
func (b *bench) calibrate(factor float64, disturb func(sample float64) float64) {
	report := &tilthv1.CalibrationReport{Kernels: "k"}
	if b.impairment != "" {
		report.Surroundings = &tilthv1.Surroundings{Impairments: []string{b.impairment}}
	}
	for range 15 {
		report.ComputeSeconds = append(report.ComputeSeconds, disturb(2e-3*factor*(1+0.01*b.rng.NormFloat64())))
		report.MemorySeconds = append(report.MemorySeconds, disturb(8e-3*factor*(1+0.01*b.rng.NormFloat64())))
	}
	b.last = b.policy.Judge(b.known, report.GetKernels(), SummarizeCalibration(report, b.now), b.quarantined)
	if b.last.Suspect != "" {
		b.suspects = append(b.suspects, b.last.Suspect)
	}
	switch {
	case b.last.Quarantine != "":
		b.quarantines, b.quarantined = append(b.quarantines, b.last.Quarantine), true
	case b.last.Release:
		b.released, b.quarantined = b.released+1, false
	}
	if b.last.Next <= 0 {
		b.t.Fatalf("the next calibration is due in %v", b.last.Next)
	}
	b.now = b.now.Add(b.last.Next)
}

func as(sample float64) float64 { return sample }

// learn calibrates until the device has a reference.
func (b *bench) learn() *bench {
	for range referenceOf {
		b.calibrate(1, as)
	}
	if b.known.GetReference() == nil {
		b.t.Fatal("no reference after five calm calibrations")
	}
	return b
}

func (b *bench) want(suspects, quarantines, released int) {
	b.t.Helper()
	if len(b.suspects) != suspects || len(b.quarantines) != quarantines || b.released != released {
		b.t.Errorf("suspects %q, quarantines %q, released %d times; want %d, %d and %d", b.suspects, b.quarantines, b.released, suspects, quarantines, released)
	}
}

func TestStableDevicesAreCalibratedAtTheInterval(t *testing.T) {
	b := newBench(t).learn()
	for range 300 {
		b.calibrate(1, as)
	}
	b.want(0, 0, 0)
	if b.last.Next != b.policy.Interval {
		t.Errorf("the next calibration is due in %v", b.last.Next)
	}
}

func TestReferenceIsOfCalmCalibrations(t *testing.T) {
	b := newBench(t)
	for range 4 {
		b.calibrate(1, as)
		b.calibrate(1, func(s float64) float64 { return s * (1 + b.rng.Float64()) })
	}
	if b.known.GetReference() != nil || len(b.known.GetLearning()) != 4 {
		t.Errorf("after four calm calibrations: %v", b.known)
	}
	b.calibrate(1, as)
	if got := b.known.GetReference().GetComputeSeconds(); got < 1.97e-3 || got > 2.03e-3 {
		t.Errorf("the reference is %v", got)
	}
	b.want(0, 0, 0)
}

func TestSuddenChangeHasTheWindowMeasuredAgainOnce(t *testing.T) {
	b := newBench(t).learn()
	calm := b.known.GetCalmAt().AsTime()
	for range 2 {
		b.calibrate(1.05, as)
		if b.last.Next != b.policy.Confirm || !b.known.GetCalmAt().AsTime().Equal(calm) {
			t.Errorf("a change that is not confirmed: %+v", b.last)
		}
	}
	for range 50 {
		b.calibrate(1.05, as)
	}
	b.want(1, 0, 0)
	if !strings.Contains(b.suspects[0], "the device changed by") {
		t.Errorf("suspected since %s", b.suspects[0])
	}
}

func TestDriftOfADayIsNoEvent(t *testing.T) {
	b := newBench(t).learn()
	for k := range 288 { // one every five minutes
		b.calibrate(1+0.06*float64(k)/288, as)
	}
	b.want(0, 0, 0)
}

func TestSlowDriftBeyondTheLimitQuarantines(t *testing.T) {
	b := newBench(t).learn()
	for k := range 288 {
		if b.calibrate(1+0.12*float64(k)/288, as); b.quarantined {
			break
		}
	}
	b.want(0, 1, 0)
	if !strings.Contains(b.quarantines[0], "it drifted") {
		t.Errorf("quarantined since %s", b.quarantines[0])
	}
}

func TestSlowDeviceIsQuarantinedWithBackOffAndProbedBack(t *testing.T) {
	b := newBench(t).learn()
	for range 3 {
		b.calibrate(1.2, as)
	}
	b.want(1, 1, 0)
	wait := b.policy.FirstProbe
	for range 8 {
		if b.last.Probe != min(wait, b.policy.LongestProbe) || b.last.Next != b.last.Probe {
			t.Errorf("quarantined for %v, want %v", b.last.Probe, wait)
		}
		wait *= 2
		b.calibrate(1.2, as)
	}
	b.calibrate(1, as)
	b.want(1, 9, 1)
	for range 3 {
		b.calibrate(1.2, as)
	}
	if b.last.Probe != b.policy.LongestProbe {
		t.Errorf("soon after a release it is quarantined for %v", b.last.Probe)
	}
	b.calibrate(1, as)
	for range 20 { // for more than an hour
		b.calibrate(1, as)
	}
	for range 3 {
		b.calibrate(1.2, as)
	}
	if b.last.Probe != b.policy.FirstProbe {
		t.Errorf("long after a release it is quarantined for %v", b.last.Probe)
	}
}

// noisy returns a sample with more noise than the limit.
func (b *bench) noisy(sample float64) float64 { return sample * (1 + b.rng.Float64()) }

func TestDeviceThatIsNoisyForMinutesIsQuarantined(t *testing.T) {
	for _, learnt := range []bool{true, false} {
		b := newBench(t)
		if learnt {
			b.learn()
		}
		began := b.now
		for len(b.quarantines) == 0 && b.now.Sub(began) < time.Hour {
			b.calibrate(1, b.noisy)
		}
		if lasted := b.known.GetRecent()[2].GetAt().AsTime().Sub(began); lasted < b.policy.Settle || lasted > b.policy.Settle+2*time.Minute {
			t.Errorf("it was quarantined after %v of noise: %q", lasted, b.quarantines)
		}
		b.calibrate(1, as)
		if b.released != 1 {
			t.Error("it is calm and not released")
		}
	}
}

// TestMinutesNoiseHasNoEffect checks that a minute's noise has no effect at any time, including the first calibration
// and quarantine.
func TestMinutesNoiseHasNoEffect(t *testing.T) {
	b := newBench(t)
	for range 20 {
		for began := b.now; b.now.Sub(began) < time.Minute; {
			b.calibrate(1, b.noisy)
		}
		b.calibrate(1, as)
	}
	b.want(0, 0, 0)
	for range 3 {
		b.calibrate(1.2, as)
	}
	b.want(1, 1, 0)
	b.calibrate(1, b.noisy)
	b.calibrate(1, as)
	b.want(1, 1, 1)
}

// TestSharedMachineStaysUsable simulates neighbours that disturb a fifth of the calibrations entirely, sometimes two
// in a row, and some samples of half of the others.
func TestSharedMachineStaysUsable(t *testing.T) {
	b := newBench(t).learn()
	for k := range 2000 {
		part := []float64{0, 0.3, 0, 0.3, 0.8, 0, 0.3, 0, 0.9, 0.9}[k%10]
		b.calibrate(1, func(s float64) float64 {
			if b.rng.Float64() < part {
				return s * (1.05 + b.rng.ExpFloat64())
			}
			return s
		})
	}
	b.want(0, 0, 0)
}

// TestDeviceThatSaysThatItIsImpairedIsQuarantined checks that a reported impairment causes a quarantine whatever the
// figures, that the device is probed as usual, and that impaired calibrations never become the reference.
func TestDeviceThatSaysThatItIsImpairedIsQuarantined(t *testing.T) {
	for _, factor := range []float64{1, 1.5} {
		b := newBench(t).learn()
		b.impairment = "is slowed down to cool"
		b.calibrate(factor, as)
		b.calibrate(factor, as)
		b.want(0, 0, 0)
		b.calibrate(factor, as)
		b.want(1, 1, 0)
		b.calibrate(factor, as)
		b.want(1, 2, 0)
		if b.quarantines[0] != "it is slowed down to cool" || b.quarantines[1] != "it is slowed down to cool still" {
			t.Errorf("quarantined since %q", b.quarantines)
		}
		b.impairment = ""
		b.calibrate(1, as)
		b.want(1, 2, 1)
	}
	b := newBench(t)
	b.impairment = "is slowed down to cool"
	b.calibrate(1.5, as)
	b.calibrate(1.5, as)
	b.impairment = ""
	b.learn()
	b.want(0, 0, 0)
	if got := b.known.GetReference().GetComputeSeconds(); got > 2.1e-3 {
		t.Errorf("the reference is %v", got)
	}
}

func TestReferenceFromADisturbedDeviceFollows(t *testing.T) {
	b := newBench(t).learn()
	for range 3 {
		b.calibrate(0.8, as)
	}
	b.want(1, 0, 0)
	if got := b.known.GetReference().GetComputeSeconds(); got > 1.65e-3 {
		t.Errorf("the reference is still %v", got)
	}
	for range 100 {
		b.calibrate(0.8, as)
	}
	b.want(1, 0, 0)
}

func TestOtherKernelsHaveAnotherReference(t *testing.T) {
	b := newBench(t).learn()
	v := b.policy.Judge(b.known, "others", &tilthv1.CalibrationFigures{ComputeSeconds: 1, MemorySeconds: 1, Noise: 0.01}, false)
	if b.known.GetReference() != nil || v.Quarantine != "" || v.Suspect != "" {
		t.Errorf("other kernels gave %+v, %v", v, b.known)
	}
}

func TestBusyDeviceIsLeftAloneForLonger(t *testing.T) {
	p := Drift{}.WithDefaults()
	at := time.Unix(1000, 0)
	if p.Due(at.Add(-time.Second), at, false) || !p.Due(at, at, false) || p.Due(at.Add(14*time.Minute), at, true) || !p.Due(at.Add(15*time.Minute), at, true) {
		t.Error("calibrations are due at other times")
	}
}
