// Package answer judges what kernels put out: it lies in memory that a runner shares with the process in which they
// run, and is compared with what the reference put out in a process of its own.
package answer
