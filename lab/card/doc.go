// Package card does on a machine with an NVIDIA GPU all that wants one: conformance cases, random points, a checker of
// memory, the card's rates, tuning, and comparisons with PyTorch in turns. A run takes nine minutes at most; the next
// one goes on where it ended. 'lab card table' prints the results beside the limits, in Markdown. Begin at steps.go;
// scripts/gpu.sh runs it.
package card
