// Package target describes what kernels are compiled for: a device and the compiler. The target's fingerprint is part
// of every record. Start with Target and Parse.
package target
