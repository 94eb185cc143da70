// Package cruntime holds the C sources that run kernels: the header that kernels share with their callers, the thread
// pool, the harness that verifies and times candidates on a device, and the C interface of compiled packages.
package cruntime
