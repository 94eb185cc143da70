// Package gpu runs everything that needs an NVIDIA GPU: conformance cases, random points, memory checkers, the
// card's peak rates, tuning, and comparisons with PyTorch. A run takes at most nine minutes, and the next one
// resumes. 'lab gpu table' prints the results and the goals as Markdown. Start with steps.go; scripts/gpu.sh runs
// the package.
package gpu
