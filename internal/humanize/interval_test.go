package humanize

import "testing"

func TestIntervalsTellHowSureTheyAre(t *testing.T) {
	for want, c := range map[string][3]float64{
		"1.50–1.57 ms":        {0.0015, 0.00157, 0.93},
		"980 µs–1.02 ms":      {0.00098, 0.00102, 0.9},
		"1.50–1.57 ms (75 %)": {0.0015, 0.00157, 0.75},
		"-":                   {0.0015, 0.0015, 0}, // single sample
	} {
		if got := Interval(c[0], c[1], c[2], 0.9); got != want {
			t.Errorf("%v is %q, want %q", c, got, want)
		}
	}
	for want, c := range map[string][2]float64{"87 %": {87, 100}, "100 %": {105, 100}, "-": {150, 100}} {
		if got := Share(c[0], c[1]); got != want {
			t.Errorf("%v is %q, want %q", c, got, want)
		}
	}
}
