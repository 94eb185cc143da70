// Package machine models the throughput and latency of a GPU's multiprocessor. All time estimates use these figures.
// They follow the published specifications of NVIDIA's Hopper and are not measured.
package machine
