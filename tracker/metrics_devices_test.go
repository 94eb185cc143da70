package tracker_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/tracker"
)

func TestMetricsFollowADevice(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	f.spare()
	session := f.calibratingRunner().GetSession()
	expect := func(present bool, lines ...string) {
		t.Helper()
		text := scrape(registry)
		for _, line := range lines {
			if strings.Contains(text, line) != present {
				t.Errorf("metrics with %q: %v, want %v", line, !present, present)
			}
		}
	}
	expect(true, `tilth_tracker_devices{state="ready"} 2`, `tilth_tracker_devices{state="quarantined"} 0`, "tilth_tracker_quarantines_total 0")
	expect(false, "tilth_tracker_device_drift_ratio{")
	f.calibrate(session, 5, 1)
	expect(true, `tilth_tracker_device_drift_ratio{device="runner"} 0`, `tilth_tracker_device_noise_ratio{device="runner"} 0`)
	f.calibrate(session, 3, 1.25)
	expect(true, `tilth_tracker_device_drift_ratio{device="runner"} 0.25`, `tilth_tracker_devices{state="quarantined"} 1`,
		`tilth_tracker_devices{state="ready"} 1`, "tilth_tracker_quarantines_total 1", "tilth_tracker_calibrations_total 8")
}
