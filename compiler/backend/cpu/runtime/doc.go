// Package runtime holds the C sources that run kernels: the thread pool that the measuring harness and compiled
// packages share.
package runtime
