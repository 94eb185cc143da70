package records

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// MaxNameBytes bounds names that are part of a store's key: agents, requests, targets. A key that is too long makes
// the store fail permanently, so such names must be checked when they enter.
const MaxNameBytes = 4096

const (
	// MinLatencySeconds is less than the time of calling any kernel.
	MinLatencySeconds = 1e-9
	// MaxOverPeak is how many times as fast as the measured peak, of float32 multiply-adds, a device may be: matrix
	// units reach 32 times as much with 8 bits, and a busy machine's measured rate may be half of the true one.
	MaxOverPeak = 64
	// maxFlopPerSecond exceeds the rate of every device, minShare is below the share of multiplications that any
	// algorithm executes, and fastMath exceeds the gain of computing with fewer bits than asked for.
	maxFlopPerSecond = 1e17
	minShare         = 1.0 / 16
	fastMath         = 8
	// rounding is the relative error of times that other programs wrote as text.
	rounding = 1e-3
	// maxClockSkew is how far the clocks of two farms may differ.
	maxClockSkew = 24 * time.Hour
)

// CandidateFault reports whether the candidate itself is at fault, so that the trial is recorded.
func CandidateFault(c tilthv1.ErrorClass) bool {
	return c >= tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE && c <= tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
}

// InfraFault reports whether the build side, the device or the farm is at fault, so that the batch is retried.
func InfraFault(c tilthv1.ErrorClass) bool {
	return c >= tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA && c <= tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
}

// Digest returns the lower-case hex SHA-256 of b, which names traces, workloads and artifacts.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// IsDigest reports whether s is the digest of b.
func IsDigest(s string, b []byte) bool {
	sum := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return s == string(text[:])
}

// ValidDigest reports whether s is a lower-case hex SHA-256.
func ValidDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// ValidShare reports whether v is a fraction of 1; 0 means unknown.
func ValidShare(v float64) bool { return v >= 0 && v <= 1 }

// Validate checks a record from outside. The error wraps ErrInvalid and names the field.
func Validate(r *tilthv1.Record) error {
	switch {
	case r.GetTarget() == "":
		return invalid("target", "is empty")
	case strings.ContainsRune(r.GetTarget(), 0):
		return invalid("target", "holds a zero byte")
	case IsPrivate(r.GetTarget()):
		return invalid("target", "is one of an owner's private records, which are not imported")
	case len(r.GetTarget()) > MaxNameBytes:
		return invalid("target", "has %d bytes, more than the limit of %d", len(r.GetTarget()), MaxNameBytes)
	case !ValidDigest(r.GetWorkloadDigest()):
		return invalid("workload_digest", "%q is not a sha256", r.GetWorkloadDigest())
	case len(r.GetWorkload()) > 0 && !IsDigest(r.GetWorkloadDigest(), r.GetWorkload()):
		return invalid("workload", "does not have the digest %s", r.GetWorkloadDigest())
	case r.GetMeasurement() == nil:
		return invalid("measurement", "is missing")
	}
	if err := validateMeasurement(r.GetMeasurement()); err != nil {
		return err
	}
	return ValidateEnergy(r.GetTarget(), r.GetMeasurement())
}

// ValidateEnergy checks that a verified measurement has energy exactly if that is the target's objective. Measurements
// with and without energy cannot be compared.
func ValidateEnergy(target string, m *tilthv1.Measurement) error {
	joules, wanted := m.GetEnergyJoules(), MeasuresEnergy(target) && Verified(m)
	switch {
	case !(joules >= 0) || math.IsInf(joules, 1):
		return invalid("measurement.energy_joules", "is %v", joules)
	case wanted && joules == 0:
		return invalid("measurement.energy_joules", "is missing, and the objective of target %s is energy", target)
	case !wanted && joules > 0:
		return invalid("measurement.energy_joules", "is %v on target %s, of which none is measured", joules, target)
	}
	return nil
}

// validateMeasurement checks a complete measurement. The error wraps ErrInvalid and names the field.
func validateMeasurement(m *tilthv1.Measurement) error {
	switch {
	case len(m.GetCandidate().GetTrace()) == 0:
		return invalid("measurement.candidate.trace", "is empty")
	case !IsDigest(m.GetCandidate().GetDigest(), m.GetCandidate().GetTrace()):
		return invalid("measurement.candidate.digest", "%q is not the trace's", m.GetCandidate().GetDigest())
	case !ValidNumerics(m.GetCandidate().GetNumerics()):
		return invalid("measurement.candidate.numerics", "is %q, not strict, default or fast", m.GetCandidate().GetNumerics())
	case !ValidShare(m.GetCandidate().GetMultiplications()):
		return invalid("measurement.candidate.multiplications", "is %v, not a share of 1", m.GetCandidate().GetMultiplications())
	case m.GetAt() == nil || !m.GetAt().IsValid():
		return invalid("measurement.at", "is missing")
	}
	return ValidateOutcome(m)
}

// ValidateOutcome checks that the times of a measurement are consistent with its error class.
func ValidateOutcome(m *tilthv1.Measurement) error {
	// An infinite or NaN error is an ordinary wrong result.
	if e := m.GetRelativeError(); e < 0 {
		return invalid("measurement.relative_error", "is %v", e)
	}
	if s := m.GetBuildSeconds(); !ValidSeconds(s) {
		return invalid("measurement.build_seconds", "is %v", s)
	}
	if s := m.GetRunSeconds(); !ValidSeconds(s) {
		return invalid("measurement.run_seconds", "is %v", s)
	}
	if CandidateFault(m.GetError()) {
		if len(m.GetSamplesSeconds()) > 0 || m.GetLatencySeconds() != 0 {
			return invalid("measurement", "has both error %v and a latency", m.GetError())
		}
		return nil
	}
	if m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return invalid("measurement.error", "is %v", m.GetError())
	}
	if len(m.GetSamplesSeconds()) == 0 {
		return invalid("measurement.samples_seconds", "is empty")
	}
	for _, s := range slices.Concat(m.GetSamplesSeconds(), []float64{m.GetLatencySeconds()}) {
		if !(s >= MinLatencySeconds) || math.IsInf(s, 1) {
			return invalid("measurement", "has a latency of %v s; no kernel takes less than %v s", s, MinLatencySeconds)
		}
	}
	if median := stats.Of(m.GetSamplesSeconds()).Median; math.Abs(m.GetLatencySeconds()/median-1) > rounding {
		return invalid("measurement.latency_seconds", "is %v, and the median of its samples %v", m.GetLatencySeconds(), median)
	}
	if r := m.GetCalibrationRatio(); !(r >= 0) || math.IsInf(r, 1) {
		return invalid("measurement.calibration_ratio", "is %v", r)
	}
	return validateInterval(m.GetInterval(), m.GetLatencySeconds())
}

// ValidateRate checks that a latency is possible for a workload of flop floating-point operations, of which the
// candidate's algorithm executes a share. leastSeconds is the limit for all of them at the rates of the machine, or 0
// if those are unknown.
func ValidateRate(m *tilthv1.Measurement, flop, leastSeconds float64) error {
	share, numerics := m.GetCandidate().GetMultiplications(), m.GetCandidate().GetNumerics()
	if share == 0 && (numerics == "" || numerics == wire.NumericsStrict) {
		share = 1
	}
	if numerics == wire.NumericsFast {
		leastSeconds /= fastMath
	}
	least := max(share, minShare) * max(flop/maxFlopPerSecond, leastSeconds)
	if Verified(m) && m.GetLatencySeconds() < least {
		return invalid("measurement.latency_seconds", "is %.3g s; at the rates of its machine, the workload takes at least %.3g s",
			m.GetLatencySeconds(), least)
	}
	return nil
}

// ValidSeconds reports whether s is a valid duration: neither negative, infinite nor NaN.
func ValidSeconds(s float64) bool { return s >= 0 && !math.IsInf(s, 1) }

// validateInterval checks an optional interval, which contains the latency.
func validateInterval(i *tilthv1.Interval, latency float64) error {
	if i == nil {
		return nil
	}
	low, high, level := i.GetLowSeconds(), i.GetHighSeconds(), i.GetLevel()
	if !(low > 0 && low <= latency*(1+rounding) && latency <= high*(1+rounding)) || math.IsInf(high, 1) || !(level >= 0 && level <= 1) {
		return invalid("measurement.interval", "is %v s to %v s at level %v", low, high, level)
	}
	return nil
}
