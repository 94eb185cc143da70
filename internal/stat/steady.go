package stat

// lowerHalf is the distance of a normal distribution's lower quartile from its median, in standard deviations.
const lowerHalf = 0.6745

// Steady is the lower quartile of samples that something may have lengthened, never shortened, and an estimate of
// their standard deviation from the half that it lengthened least, relative to their median. Both are 0 without
// samples.
func Steady(samples []float64) (low, noise float64) {
	low, middle, _ := Quartiles(samples)
	if middle == 0 {
		return low, 0
	}
	return low, (middle - low) / lowerHalf / middle
}
