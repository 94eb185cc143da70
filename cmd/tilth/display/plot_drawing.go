package display

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/tuner/progress"
)

// style supports light and dark pages.
const style = `
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-size: 16px; font-weight: 600 }
    .note { fill: #666 }
    .page { fill: #fff }
    .grid { stroke: #e4e4e4 }
    .axis { stroke: #777 }
    .curve { fill: none; stroke: #0b62c4; stroke-width: 2; stroke-linejoin: round }
    .end { fill: #0b62c4 }
    .reference { stroke: #a4511b; stroke-dasharray: 5 4 }
    .reference-name { fill: #a4511b }
    @media (prefers-color-scheme: dark) {
      text { fill: #ddd }
      .note { fill: #999 }
      .page { fill: #16181c }
      .grid { stroke: #2c3036 }
      .axis { stroke: #8a8f98 }
      .curve { stroke: #6cb0ff }
      .end { fill: #6cb0ff }
      .reference { stroke: #f0a36b }
      .reference-name { fill: #f0a36b }
    }
  `

// drawing is an SVG document under construction.
type drawing struct{ out strings.Builder }

func (d *drawing) open(title string) {
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&d.out, "  <title>%s</title>\n  <style>%s</style>\n", escape(title), style)
	fmt.Fprintf(&d.out, `  <rect class="page" width="%d" height="%d"/>`+"\n", width, height)
}

func (d *drawing) close() { d.out.WriteString("</svg>\n") }

func (d *drawing) text(class string, x, y float64, anchor, text string) {
	fmt.Fprintf(&d.out, `  <text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, px(x), px(y), anchor, escape(text))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.out, `  <line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, px(x1), px(y1), px(x2), px(y2))
}

// axisY labels the latencies left of the first panel.
func (d *drawing) axisY(y axis) {
	for _, tick := range y.ticks {
		d.text("tick", left-2*tickSize, placeY(y, tick)+4, "end", y.label(tick))
	}
	const x, middle = 20, (panelTop + panelBottom) / 2
	fmt.Fprintf(&d.out, `  <text class="name" x="%d" y="%d" text-anchor="middle" transform="rotate(-90 %d %d)">%s</text>`+"\n",
		x, middle, x, middle, escape(y.name))
}

// panel draws the curve over one axis, starting at x pixels.
func (d *drawing) panel(x float64, latency, over axis, c Curve, value func(progress.Point) float64) {
	for _, tick := range latency.ticks {
		d.line("grid", x, placeY(latency, tick), x+panelWidth, placeY(latency, tick))
	}
	for _, tick := range over.ticks {
		place := x + over.at(tick)*panelWidth
		d.line("axis", place, panelBottom, place, panelBottom+tickSize)
		d.text("tick", place, panelBottom+labelDistance, "middle", over.label(tick))
	}
	d.line("axis", x, panelBottom, x+panelWidth, panelBottom)
	d.line("axis", x, panelTop, x, panelBottom)
	d.text("name", x+panelWidth/2, panelBottom+labelDistance+20, "middle", over.name)
	if drawable(c.Untuned) {
		d.reference(x, latency, c.Untuned, "untuned")
	}
	if len(c.Points) > 0 && c.drawsLimit(c.Points[len(c.Points)-1].Seconds) {
		d.reference(x, latency, c.Limit, "machine's limit")
	}
	d.curve(x, latency, over, c.Points, value)
}

// reference draws a dashed line at a latency.
func (d *drawing) reference(x float64, latency axis, seconds float64, name string) {
	y := placeY(latency, seconds)
	d.line("reference", x, y, x+panelWidth, y)
	d.text("reference-name", x+panelWidth-4, max(y-5, panelTop+11), "end", name)
}

// curve draws a step line: a latency holds until the next point, and the last one to the end.
func (d *drawing) curve(x float64, latency, over axis, points progress.Curve, value func(progress.Point) float64) {
	var path strings.Builder
	var y float64
	for _, p := range points {
		if !drawable(p.Seconds) {
			continue
		}
		place := px(x + over.at(value(p))*panelWidth)
		y = placeY(latency, p.Seconds)
		if path.Len() == 0 {
			fmt.Fprintf(&path, "M%s %s", place, px(y))
		} else {
			fmt.Fprintf(&path, "H%sV%s", place, px(y))
		}
	}
	if path.Len() == 0 {
		return
	}
	fmt.Fprintf(&d.out, `  <path class="curve" d="%sH%s"/>`+"\n", path.String(), px(x+panelWidth))
	fmt.Fprintf(&d.out, `  <circle class="end" cx="%s" cy="%s" r="3"/>`+"\n", px(x+panelWidth), px(y))
}

// placeY returns the distance of a latency from the top in pixels.
func placeY(latency axis, seconds float64) float64 {
	return panelBottom - latency.at(seconds)*(panelBottom-panelTop)
}

// px formats a length in pixels, to a tenth.
func px(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// escape escapes a text for XML. Invalid characters become replacement characters.
func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder does not fail
	return out.String()
}
