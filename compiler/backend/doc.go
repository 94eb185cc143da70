// Package backend defines the interface between kinds of devices and the code that tunes, builds, measures and
// packages kernels. It isolates the rest of the program from the kinds of devices. Package registry lists the
// backends.
package backend
