// Package results stores measurements of benchmarks in the repository: a folder for each kind of machine, a file for
// each benchmark, and one JSON row per line. Each kind of machine keeps its own newest rows.
//
// The folder card has the results of NVIDIA's cards. The folder studies has measurements of one-off experiments,
// summarised in docs/performance.md.
package results
