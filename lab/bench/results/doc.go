// Package results keeps measurements of benchmarks in the repository: a folder for each kind of machine, a file for
// each benchmark, and one row of JSON a line. Machines have different engines, so each keeps its own newest rows.
//
// The folder card has the results of NVIDIA's cards. The folder studies has the measurements of single experiments,
// which no benchmark repeats; docs/performance.md summarises them.
package results
