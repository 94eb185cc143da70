package web

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// driftOf plots a device's slowdown relative to its reference; empty for fewer than two calibrations.
func driftOf(c *tilthv1.CalibrationCourse) template.HTML {
	var percent []float64
	for _, v := range c.GetDrift() {
		percent = append(percent, 100*float64(v))
	}
	return courseOf("Drift over time", c.GetAtSeconds(), percent, 1, "%.1f %%")
}

// heatOf plots a device's highest temperature; empty without sensors.
func heatOf(c *tilthv1.CalibrationCourse) template.HTML {
	var at []int64
	var celsius []float64
	for i, v := range c.GetCelsius() {
		if v != 0 && i < len(c.GetAtSeconds()) {
			at, celsius = append(at, c.GetAtSeconds()[i]), append(celsius, float64(v))
		}
	}
	return courseOf("Temperature over time", at, celsius, 5, "%.0f °C")
}

// courseOf plots values over time. room is the margin of the vertical axis, in the values' unit.
func courseOf(label string, at []int64, values []float64, room float64, format string) template.HTML {
	if len(at) < 2 || len(at) != len(values) {
		return ""
	}
	text := func(v float64) string { return fmt.Sprintf(format, v) }
	first, last := at[0], at[len(at)-1]
	x := scale{low: -max(1, float64(last-first)), high: 0, from: marginLeft, to: chartWidth - marginRight}
	y := scale{low: slices.Min(values) - room, high: slices.Max(values) + room, from: chartHeight - marginBottom, to: marginTop}
	d := &drawing{}
	d.open("chart", label, chartWidth, chartHeight)
	d.grid(x, y, "before the last", axis{func(v float64) string { return spanText(math.Abs(v)) }, clockStep}, axis{text, roundStep})
	d.WriteString(`<path class="curve" d="`)
	for i, v := range values {
		fmt.Fprintf(d, "%c%.1f %.1f", "ML"[min(i, 1)], x.at(float64(at[i]-last)), y.at(v))
	}
	d.WriteString(`"/>`)
	for i, v := range values {
		fmt.Fprintf(d, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.5"><title>%s at %s UTC</title></circle>`,
			x.at(float64(at[i]-last)), y.at(v), text(v), time.Unix(at[i], 0).UTC().Format("2006-01-02 15:04"))
	}
	return d.done()
}
