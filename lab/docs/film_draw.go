package main

import (
	"cmp"
	"fmt"
	"html"
	"strings"
)

// Sizes in pixels of a character and of the margins.
const (
	charWidth, charHeight = 8.4, 18.0
	fontSize, margin      = 14, 14.0
)

// hold is how long the last frame stays before the film repeats, in seconds.
const hold = 8.0

const style = `svg{background:#1d1b19;border-radius:8px}text{font:%dpx ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#e6e1d9;white-space:pre}
.c31{fill:#ef8a7a}.c32{fill:#a6cf85}.c33{fill:#e5c07b}.p{fill:#86c3dc}
#f{animation:f %.1fs step-end infinite}@media(prefers-reduced-motion:reduce){#f{animation:none;transform:translateY(-%.0fpx)}}
@keyframes f{%s}`

// draw renders all frames as one column of lines and animates it behind a window. Equal lines are defined once.
func draw(frames []frame, command string, columns, lines int, seconds float64) string {
	width, height := charWidth*float64(columns), charHeight*float64(lines+1)
	last := frames[len(frames)-1].at.Seconds()
	var steps, lineDefs, body strings.Builder
	known := map[string]int{}
	for n, f := range frames {
		at := f.at.Seconds() / cmp.Or(last, 1) * seconds / (seconds + hold) * 100
		if n == 0 {
			at = 0
		}
		fmt.Fprintf(&steps, "%.2f%%{transform:translateY(-%.0fpx)}", at, height*float64(n))
		fmt.Fprintf(&body, "<g transform=\"translate(0 %.0f)\">", height*float64(n))
		for row, line := range f.lines {
			text := drawLine(line)
			if text == "" {
				continue
			}
			id, is := known[text]
			if !is {
				id = len(known)
				known[text] = id
				fmt.Fprintf(&lineDefs, "<g id=\"l%d\">%s</g>", id, text)
			}
			fmt.Fprintf(&body, "<use href=\"#l%d\" y=\"%.0f\"/>", id, charHeight*float64(row+1))
		}
		body.WriteString("</g>\n")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", width+2*margin, height+2*margin)
	fmt.Fprintf(&out, "<title>%s, in a terminal</title>\n<style>", html.EscapeString(command))
	fmt.Fprintf(&out, style, fontSize, seconds+hold, height*float64(len(frames)-1), steps.String())
	fmt.Fprintf(&out, "</style>\n<defs>%s</defs>\n", lineDefs.String())
	fmt.Fprintf(&out, "<svg x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\">\n", margin, margin, width, height)
	fmt.Fprintf(&out, "<text y=\"%d\"><tspan class=\"p\">$</tspan> %s</text>\n", fontSize, html.EscapeString(command))
	// The frames' window is below the fixed prompt.
	fmt.Fprintf(&out, "<svg y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"><g id=\"f\">\n%s</g></svg>\n</svg>\n</svg>\n", charHeight, width, height-charHeight, body.String())
	return strings.ReplaceAll(out.String(), "translateY(-0px)", "none")
}

// drawLine renders the words of a line at fixed positions, because fonts differ in width.
func drawLine(line []cell) string {
	var out strings.Builder
	for start := 0; start < len(line); {
		if line[start].char == ' ' {
			start++
			continue
		}
		end := start
		for end < len(line) && line[end].colour == line[start].colour && !twoSpaces(line[end:]) {
			end++
		}
		var text strings.Builder
		for _, c := range line[start:end] {
			text.WriteRune(c.char)
		}
		class := ""
		if c := line[start].colour; c != 0 {
			class = fmt.Sprintf(" class=\"c%d\"", c)
		}
		fmt.Fprintf(&out, "<text x=\"%.1f\"%s>%s</text>", charWidth*float64(start), class, html.EscapeString(strings.TrimRight(text.String(), " ")))
		start = max(end, start+1)
	}
	return out.String()
}

// twoSpaces reports whether a line starts with a gap between columns.
func twoSpaces(line []cell) bool {
	return line[0].char == ' ' && (len(line) == 1 || line[1].char == ' ')
}
