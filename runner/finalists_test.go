package runner

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// script is a device whose calibrations take the listed times; the last one repeats.
type script struct {
	seconds []float64
	runs    int
}

func (s *script) Name() string { return "script" }

func (s *script) Run(context.Context) (CalibrationTimes, error) {
	took := s.seconds[min(s.runs, len(s.seconds)-1)]
	s.runs++
	return CalibrationTimes{Compute: []float64{took}, Memory: []float64{took}}, nil
}

func TestFinalistsRaceAgainOnADeviceThatChanged(t *testing.T) {
	b := newBench(t, native(t))
	plan := b.plan(t, "good", "slow")
	plan.Finalists = true
	for _, c := range []struct {
		name       string
		device     []float64
		runs       int
		remeasured string
	}{
		{"a calm device", []float64{1, 1.02}, 2, ""},
		{"one that changed once", []float64{1, 1.05, 1.05}, 3, "the device changed by 5.0 % while finalists raced"},
		{"one that never rests", []float64{1, 2, 4, 8, 16}, 4, "changed by 100.0 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			device := &script{seconds: c.device}
			var told []*tilthv1.ReportCalibrationRequest
			h := NewHandler(Config{Device: "board", Logger: slog.New(slog.DiscardHandler), Watch: NewWatch(WatchConfig{
				Kernels: device,
				Report: func(_ context.Context, r *tilthv1.ReportCalibrationRequest) error {
					told = append(told, r)
					return nil
				},
			})})
			candidates := []*tilthv1.Candidate{{Digest: "good"}, {Digest: "slow"}}
			s := newSheet(h, &tilthv1.LeaseToken{Session: "session"}, &tilthv1.MeasureWork{Candidates: candidates})
			if err := h.race(t.Context(), plan, 0.03, s); err != nil {
				t.Fatal(err)
			}
			if device.runs != c.runs || len(told) != 1 || told[0].GetSession() != "session" {
				t.Errorf("%d calibrations, of which %v were reported; want %d and one", device.runs, told, c.runs)
			}
			list := s.pending.GetMeasurements()
			if len(list) != 2 {
				t.Fatalf("%d measurements", len(list))
			}
			for _, m := range list {
				if !strings.Contains(m.GetRemeasured(), c.remeasured) || (m.GetRemeasured() == "") != (c.remeasured == "") {
					t.Errorf("%s says %q, want %q", m.GetCandidate().GetDigest(), m.GetRemeasured(), c.remeasured)
				}
			}
		})
	}
}
