package web

import (
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestPredictionsAreComparedWithWhatWasMeasured covers only trials with both, by algorithm.
func TestPredictionsAreComparedWithWhatWasMeasured(t *testing.T) {
	points := []point{
		{trial: 0, latency: 9, algorithm: "strict"}, // no prediction
		{trial: 1, predicted: 1, class: tilthv1.ErrorClass_ERROR_CLASS_CRASH, algorithm: "strict"},
		{trial: 2, predicted: 4, latency: 2, algorithm: "strict"},
		{trial: 3, predicted: 2, latency: 1, algorithm: "fast"},
		{trial: 4, predicted: 6, latency: 3, algorithm: "strict"},
		{trial: 5, predicted: 8, latency: 4, algorithm: "strict"},
		{trial: 6, predicted: 3, latency: 9, algorithm: "strict"},
	}
	got := predictionsOf(points)
	if got.All.Trials != 5 || got.All.Rank() != "0.40" || got.All.Within() != "2.00x" {
		t.Errorf("all: %+v", got.All)
	}
	if len(got.ByAlgorithm) != 2 || got.ByAlgorithm[0].Algorithm != "fast" || got.ByAlgorithm[0].Rank() != "-" || got.ByAlgorithm[1].Trials != 4 {
		t.Errorf("by algorithm: %+v", got.ByAlgorithm)
	}
	if len(got.Fastest) != 5 || got.Fastest[0] != (prediction{3, "fast", 2, 1, 1}) || got.Fastest[4] != (prediction{6, "strict", 3, 9, 2}) {
		t.Errorf("the fastest: %+v", got.Fastest)
	}
	text := string(got.Chart)
	if n := strings.Count(text, "<circle"); n != 6 || strings.Count(text, `class="failed"`) != 1 || !strings.Contains(text, `class="equal"`) ||
		!strings.Contains(text, `aria-label="Measured latency over predicted latency"`) || !strings.Contains(text, "trial 2: 2.00 s, predicted 4.00 s; strict") {
		t.Errorf("%d trials are drawn: %s", n, text)
	}
	if none := predictionsOf(points[:2]); none.Chart != "" || none.All.Trials != 0 {
		t.Errorf("without a trial that has both: %+v", none)
	}
}
