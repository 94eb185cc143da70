package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tracker/web"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// plotCurve is the data of a plot. Latencies are in seconds; 0 means unknown.
type plotCurve struct {
	// Title may be any text.
	Title  string
	Points progress.Curve
	// Elapsed and Trials are the end of the curve.
	Elapsed time.Duration
	Trials  int
	// Untuned is the latency with default schedules, and Limit the machine's lower bound.
	Untuned, Limit float64
}

const (
	plotWidth, plotHeight = 960, 280
	plotLeft, plotTop     = 12, 60
	panelWidth            = (plotWidth - 3*plotLeft) / 2
)

// plotStyle supports light and dark pages.
const plotStyle = `
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-size: 16px; font-weight: 600 }
    .note, .tick, .axis { fill: #666 }
    .page { fill: #fff }
    .grid { stroke: #e4e4e4 }
    .curve { fill: none; stroke: #0b62c4; stroke-width: 2; stroke-linejoin: round }
    .dot { fill: #0b62c4 }
    .limit { stroke: #a4511b; stroke-dasharray: 5 4 }
    .tick.limit-text { fill: #a4511b }
    @media (prefers-color-scheme: dark) {
      text { fill: #ddd }
      .note, .tick, .axis { fill: #999 }
      .page { fill: #16181c }
      .grid { stroke: #2c3036 }
      .curve { stroke: #6cb0ff }
      .dot { fill: #6cb0ff }
      .limit { stroke: #f0a36b }
      .tick.limit-text { fill: #f0a36b }
    }
  `

// write writes the charts of a job's page as an SVG document. It skips impossible latencies.
func (c plotCurve) write(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&out, "  <title>%s</title>\n  <style>%s</style>\n", escapeXML(c.Title), plotStyle)
	fmt.Fprintf(&out, `  <rect class="page" width="%d" height="%d"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&out, `  <text class="title" x="%d" y="26">%s</text>`+"\n", plotLeft, escapeXML(c.Title))
	fmt.Fprintf(&out, `  <text class="note" x="%d" y="46">%s</text>`+"\n", plotLeft, escapeXML(c.note()))
	byTime, byTrials := web.Curves(c.Points, c.Limit)
	for k, chart := range []any{byTime, byTrials} {
		fmt.Fprintf(&out, `  <svg x="%d" y="%d" width="%d" height="%d">%s</svg>`+"\n", plotLeft+k*(panelWidth+plotLeft), plotTop, panelWidth, plotHeight-plotTop, chart)
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// escapeXML escapes a text for XML. Invalid characters become replacement characters.
func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder does not fail
	return out.String()
}

// note summarises the result in words.
func (c plotCurve) note() string {
	if len(c.Points) == 0 {
		return "no latency: some tasks have no verified candidate yet"
	}
	best := c.Points[len(c.Points)-1].Seconds
	text := fmt.Sprintf("%s after %s and %d trials", humanize.Seconds(best), humanize.Clock(c.Elapsed), c.Trials)
	if c.Untuned > 0 {
		text += fmt.Sprintf("; untuned %s, %s", humanize.Seconds(c.Untuned), humanize.Ratio(c.Untuned, best))
	}
	if c.Limit > 0 {
		text += fmt.Sprintf("; the machine's limit for direct sums is %s", humanize.Seconds(c.Limit))
	}
	return text
}
