// Package runtime holds the C sources that run kernels: the thread pool of the harness and of compiled packages.
package runtime
