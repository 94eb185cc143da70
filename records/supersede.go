package records

import (
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// disturbedRatio is how many times its best known time the calibration kernel takes on a device whose measurements
	// are not held against those made in peace.
	disturbedRatio = 1.1
	// fairSamples are enough for a measurement to replace one that a disturbed device made.
	fairSamples = 5
	// mostLuck is how many times as long as it was measured a candidate may take in truth. One that takes longer when
	// it is measured again was disturbed between two calibrations that were not.
	mostLuck = 2
)

// Supersedes says whether a verified measurement makes its candidate the best of a workload on a target, given the
// best measurement so far (nil = none).
//
// Of different candidates the one with the lower cost is better, which mostly is its median. The upper end of the
// interval would guard against lucky samples, but noise only ever lengthens them: on a busy machine a good candidate's
// interval ends far above all its median says. Luck is what finalists are for: of one candidate the measurement with
// more samples counts, of equals the later, so that the best, measured again, may turn out slower. What a disturbed
// device says takes nothing back that was measured in peace.
func Supersedes(m, best *tilthv1.Measurement) bool {
	if best == nil {
		return true
	}
	if m.GetCandidate().GetDigest() != best.GetCandidate().GetDigest() {
		return Cost(m) < Cost(best)
	}
	samples, had := len(m.GetSamplesSeconds()), len(best.GetSamplesSeconds())
	if m.GetRemeasured() != "" || best.GetSuspected() != "" {
		had = min(had, samples) // the one before is in doubt, however many samples it has
	}
	if disturbed(m) != disturbed(best) {
		return disturbed(best) && samples >= min(had, fairSamples)
	}
	if Cost(m) > mostLuck*Cost(best) {
		return false
	}
	return samples > had || samples == had && m.GetAt().AsTime().After(best.GetAt().AsTime())
}

// Cost is what is to be low of a verified measurement: joules where they were measured, as they are of all
// measurements on targets whose objective is energy and of no others; seconds elsewhere.
func Cost(m *tilthv1.Measurement) float64 {
	if joules := m.GetEnergyJoules(); joules > 0 {
		return joules
	}
	return m.GetLatencySeconds()
}

// MeasuresEnergy says whether a target's objective is energy, by the beginning of its fingerprint.
func MeasuresEnergy(target string) bool {
	of, _ := SplitTarget(target)
	return strings.HasPrefix(of, "energy-")
}

// Refutes says whether a measurement shows that its candidate, which was right before, is not to be used.
func Refutes(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT || m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_CRASH
}

func disturbed(m *tilthv1.Measurement) bool { return m.GetCalibrationRatio() > disturbedRatio }

// Verified says whether a measurement is of a candidate that computes what it should.
func Verified(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE
}
