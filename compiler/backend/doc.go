// Package backend defines the interface between kinds of devices and the code that tunes, builds, measures and
// packages kernels. It hides device differences. Package registry lists the backends.
package backend
