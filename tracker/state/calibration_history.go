package state

import (
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// maxCourse bounds the calibrations in a device's history.
const maxCourse = 48

// remember appends the latest calibration to the device's history, once there is a reference to compare it with.
func remember(c *tilthv1.DeviceCalibration, now time.Time) {
	if c.GetReference() == nil || len(c.GetRecent()) == 0 {
		return
	}
	if c.GetCourse() == nil {
		c.Course = &tilthv1.CalibrationCourse{}
	}
	to := c.GetCourse()
	to.AtSeconds = last(append(to.AtSeconds, now.Unix()))
	to.Drift = last(append(to.Drift, float32(policy.DriftOf(c.GetRecent()[len(c.GetRecent())-1], c.GetReference()))))
	to.Celsius = last(append(to.Celsius, hottest(c.GetSurroundings())))
}

// last drops all but the last maxCourse elements, in place.
func last[T any](all []T) []T { return slices.Delete(all, 0, max(0, len(all)-maxCourse)) }

// hottest returns the highest temperature of all sensors in degrees Celsius, or 0 without sensors.
func hottest(s *tilthv1.Surroundings) (celsius float32) {
	for _, t := range s.GetTemperatures() {
		celsius = max(celsius, float32(t.GetCelsius()))
	}
	return celsius
}
