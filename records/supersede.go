package records

import (
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// disturbedRatio is the calibration time, relative to the best known, beyond which a device counts as disturbed.
	disturbedRatio = 1.1
	// fairSamples suffice for a measurement to replace one from a disturbed device.
	fairSamples = 5
	// maxLuck bounds how much slower than measured a candidate can really be. A repeated measurement that is slower
	// still was disturbed between two undisturbed calibrations.
	maxLuck = 2
)

// Supersedes reports whether a verified measurement makes its candidate the best of a workload on a target, given the
// best measurement so far, or nil.
//
// Of different candidates the one with the lower cost wins, usually the median latency. Using the upper end of the
// interval would guard against lucky samples, but noise only lengthens samples: on a busy machine even a good
// candidate's interval extends far above its median. Finalists correct for luck: for one candidate, the measurement
// with more samples counts, the later one if equal, so a best that is measured again may become slower. A disturbed
// device never overrides an undisturbed measurement.
func Supersedes(m, best *tilthv1.Measurement) bool {
	if best == nil {
		return true
	}
	if m.GetCandidate().GetDigest() != best.GetCandidate().GetDigest() {
		return Cost(m) < Cost(best)
	}
	samples, had := len(m.GetSamplesSeconds()), len(best.GetSamplesSeconds())
	if m.GetRemeasured() != "" || best.GetSuspected() != "" {
		had = min(had, samples) // the previous measurement is in doubt, whatever its number of samples
	}
	if disturbed(m) != disturbed(best) {
		return disturbed(best) && samples >= min(had, fairSamples)
	}
	if Cost(m) > maxLuck*Cost(best) {
		return false
	}
	return samples > had || samples == had && m.GetAt().AsTime().After(best.GetAt().AsTime())
}

// Cost returns the quantity to minimize: joules if the measurement has them, which it does exactly on targets with an
// energy objective, else seconds.
func Cost(m *tilthv1.Measurement) float64 {
	if joules := m.GetEnergyJoules(); joules > 0 {
		return joules
	}
	return m.GetLatencySeconds()
}

// MeasuresEnergy reports whether a target's objective is energy, by the prefix of its fingerprint.
func MeasuresEnergy(target string) bool {
	of, _ := SplitTarget(target)
	return strings.HasPrefix(of, "energy-")
}

// Refutes reports whether a measurement shows that a candidate that passed before must not be used.
func Refutes(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT || m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_CRASH
}

func disturbed(m *tilthv1.Measurement) bool { return m.GetCalibrationRatio() > disturbedRatio }

// Verified reports whether a measurement passed verification.
func Verified(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE
}
