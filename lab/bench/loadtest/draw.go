package loadtest

import (
	"fmt"
	"math"
	"strings"
)

// Sizes of the chart in pixels.
const (
	width, height = 960, 380
	left, right   = 70, 24
	top, bottom   = 64, 56
	gap           = 70
	panelWidth    = (width - left - right - gap) / 2
)

// draw renders the sweep as an SVG document: the tracker's processor time per result, over devices and over records.
func (s *sweep) draw() string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="13">`+"\n", width, height)
	out.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	text(&out, left, 26, "start", "What a result costs the tracker: microseconds of processor time")
	most := 0.0
	for _, p := range append(append([]point(nil), s.Devices...), s.Records...) {
		most = math.Max(most, 1e6*p.Details.TrackerCPUSeconds)
	}
	panel(&out, left, "devices", s.Devices, ceiling(most))
	panel(&out, left+panelWidth+gap, "records in the file", s.Records, ceiling(most))
	out.WriteString("</svg>\n")
	return out.String()
}

// ceiling returns the top of an axis for a value: 1, 2 or 5 times a power of ten.
func ceiling(v float64) float64 {
	for scale := 1.0; ; scale *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if step*scale >= v {
				return step * scale
			}
		}
	}
}

// panel draws one series over a logarithmic axis.
func panel(out *strings.Builder, x0 float64, name string, series []point, most float64) {
	if len(series) == 0 {
		return
	}
	low, high := math.Log10(series[0].At), math.Log10(series[len(series)-1].At)
	x := func(at float64) float64 { return x0 + panelWidth*(math.Log10(at)-low)/math.Max(high-low, 1e-9) }
	y := func(v float64) float64 { return top + (height-top-bottom)*(1-v/most) }
	for i := range 6 {
		v := most * float64(i) / 5
		fmt.Fprintf(out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x0, x0+panelWidth, y(v), y(v))
		text(out, x0-8, y(v)+4, "end", fmt.Sprintf("%g", v))
	}
	var line []string
	for _, p := range series {
		v := 1e6 * p.Details.TrackerCPUSeconds
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(p.At), y(v)))
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="4" fill="#1f6f4a"/>`+"\n", x(p.At), y(v))
		text(out, x(p.At), y(v)-10, "middle", fmt.Sprintf("%.0f", v))
		text(out, x(p.At), height-bottom+20, "middle", fmt.Sprintf("%g", p.At))
	}
	fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="#1f6f4a" stroke-width="2"/>`+"\n", strings.Join(line, " "))
	text(out, x0+panelWidth/2, height-bottom+42, "middle", name)
}

func text(out *strings.Builder, x, y float64, anchor, words string) {
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, words)
}
