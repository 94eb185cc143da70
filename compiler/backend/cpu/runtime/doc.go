// Package runtime holds the C sources that run kernels: the thread pool that the harness and compiled packages share.
package runtime
