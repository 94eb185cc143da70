package features

import "math"

// Log is the logarithm of a count or size to the base of two; 0 for none.
func Log(v float64) float64 { return math.Log2(1 + max(0, v)) }

// Ratio is the logarithm of a/b to the base of two, within ±40; 0 where one of them is 0.
func Ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return 0
	}
	return min(max(math.Log2(a/b), -40), 40)
}

// Share is a/b; 0 where b is 0.
func Share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Finite is a number that a model can be trained on: 0 for none, and nothing beyond 1e30.
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
