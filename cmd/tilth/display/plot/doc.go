// Package plot draws the latency of a job as an SVG file, over time and over trials.
package plot
