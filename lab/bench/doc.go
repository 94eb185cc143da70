// Package bench is what the benchmarks have in common: results that are stored in the repository, peers in processes
// of their own, ratios of interleaved programs, and tables in Markdown.
//
// Results are in lab/bench/results: a folder for each kind of machine, a file for each benchmark, and one JSON row per
// line. Each kind of machine keeps its own newest rows. The folder card has the results of NVIDIA's cards. The folder
// studies has measurements of one-off experiments, summarised in docs/performance.md.
package bench
