package costfeatures

import "math"

// Log returns the binary logarithm of a count or size plus one.
func Log(v float64) float64 { return math.Log2(1 + max(0, v)) }

// Ratio returns the binary logarithm of a/b, clamped to ±40; 0 if one of them is 0.
func Ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return 0
	}
	return min(max(math.Log2(a/b), -40), 40)
}

// Share returns a/b; 0 if b is 0.
func Share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Finite returns a number suitable for training: 0 for NaN, with magnitudes limited to 1e30.
func Finite(v float64) float32 {
	switch {
	case math.IsNaN(v):
		return 0
	case v > 1e30:
		return 1e30
	case v < -1e30:
		return -1e30
	}
	return float32(v)
}
