package stat

// lowerHalf is the distance between the lower quartile and the median of a normal distribution, in standard
// deviations.
const lowerHalf = 0.6745

// Steady returns the lower quartile of samples that disturbances may have lengthened, but never shortened,
// and an estimate of their relative standard deviation from the less disturbed half. It returns zeros without
// samples.
func Steady(samples []float64) (low, noise float64) {
	low, middle, _ := Quartiles(samples)
	if middle == 0 {
		return low, 0
	}
	return low, (middle - low) / lowerHalf / middle
}
