// Package card runs everything that needs an NVIDIA GPU: conformance cases, random points, a memory checker,
// the card's rates, tuning, and comparisons with PyTorch in turns. A run takes at most nine minutes; the next
// one continues. 'lab card table' prints the results beside the limits, in Markdown. Start at steps.go;
// scripts/gpu.sh runs it.
package card
