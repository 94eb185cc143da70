// Package farm assembles services from their parts: the tracker over its data folder, agents connected to a
// tracker, or all of them in one process. It also checks whether a machine is suitable for tuning (tilth doctor).
// Start with StartLocal.
package farm
