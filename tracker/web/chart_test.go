package web

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestTicksAreRound checks that ticks lie on the axis, have one or two digits, and are neither few nor many.
func TestTicksAreRound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		low := math.Pow(10, rapid.Float64Range(-9, 3).Draw(rt, "low"))
		y := latencies(low, low*math.Pow(10, rapid.Float64Range(0, 4).Draw(rt, "decades")), 0)
		ticks := y.ticks(roundStep)
		if len(ticks) < 2 || len(ticks) > 13 {
			rt.Errorf("from %v to %v there are the ticks %v", y.low, y.high, ticks)
		}
		for _, v := range ticks {
			if v < y.low*(1-1e-6) || v > y.high*(1+1e-6) {
				rt.Errorf("tick %v is not from %v to %v", v, y.low, y.high)
			}
			if text := strings.Fields(axisSeconds(v))[0]; len(strings.Trim(text, ".0")) > 5 {
				rt.Errorf("tick %v is shown as %s", v, text)
			}
		}
	})
	for _, test := range []struct {
		axis      axis
		low, high float64
		want      string
	}{
		{clockAxis, 0, 58, "0 s, 20 s, 40 s"},
		{clockAxis, 21, 58, "30 s, 40 s, 50 s"},
		{clockAxis, 0, 1500, "0 s, 5 min, 10 min, 15 min, 20 min, 25 min"},
		{clockAxis, 0, 40000, "0 s, 3 h, 6 h, 9 h"},
		{trialAxis, 0, 3, "0, 1, 2, 3"},
		{trialAxis, 0, 200, "0, 50, 100, 150, 200"},
		{latencyAxis, 8.47e-3, 9.64e-3, "8.5 ms, 9 ms, 9.5 ms"},
		{latencyAxis, 8.631e-3, 8.639e-3, "8.632 ms, 8.634 ms, 8.636 ms, 8.638 ms"},
	} {
		var got []string
		for _, v := range (scale{low: test.low, high: test.high}).ticks(test.axis.step) {
			got = append(got, test.axis.text(v))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("ticks from %v to %v: %s, want %s", test.low, test.high, text, test.want)
		}
	}
}

var drawnLimit = regexp.MustCompile(`class="limit" d="M\d+ ([\d.]+)H`)

// TestChartsUseTheirSpaceAndShowTheLimit checks that a curve begins at the left edge, that the limit is drawn, and
// that a distant limit takes no space from the data.
func TestChartsUseTheirSpaceAndShowTheLimit(t *testing.T) {
	c := progress.Curve{{Elapsed: 30 * time.Second, Trials: 90, Seconds: 9e-3}, {Elapsed: time.Minute, Trials: 200, Seconds: 6e-3}}
	across := func(p progress.Point) float64 { return float64(p.Trials) }
	for limit, want := range map[float64]string{0: "", 5e-3: "limit 5.00 ms<", 1e-4: "limit 100 µs, below<"} {
		text := string(curveOf(c, limit, "trials", trialAxis, across))
		if !strings.Contains(text, `class="curve" d="M64.0 `) {
			t.Errorf("the curve does not begin at the left edge: %s", text)
		}
		drawn := drawnLimit.FindStringSubmatch(text)
		if (drawn == nil) != (want == "") || !strings.Contains(text, want) {
			t.Errorf("with the limit %v the chart has %v, want %q: %s", limit, drawn, want, text)
		}
	}
	for _, limit := range []float64{0, 5e-3, 1e-4, 1e-9} {
		if y := latencies(6e-3, 9e-3, limit); math.Abs(y.at(9e-3)-y.at(6e-3)) < 0.4*(chartHeight-marginTop-marginBottom) {
			t.Errorf("with the limit %v the data takes %v pixels", limit, y.at(6e-3)-y.at(9e-3))
		}
	}
}
