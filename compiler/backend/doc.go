// Package backend is the seam between what tunes, builds, measures and packages kernels and the kinds of devices that
// they are for. All that the rest of the program knows of a kind of device is here; package registry lists the
// backends there are.
package backend
