// Package target describes what kernels are compiled for: a device of some kind, and the compiler. Its fingerprint is
// part of every record. Begin with Target and Parse.
package target
