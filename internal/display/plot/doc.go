// Package plot draws how the latency of a job came down, as an SVG file: over time and over trials, side by side.
package plot
