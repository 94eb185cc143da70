// Package replay has recorded sets: the measurements of every candidate of a part of one workload's space, on which
// searches are compared without a device. A search may propose any of these candidates and gets what the device
// measured. Package record makes sets, package contest runs searches on them. Begin with Set.
package replay
