// Package farm assembles services from their parts: the tracker over its data folder, agents connected to a
// tracker, or all of them in one process. It also examines whether a machine can tune. Start with StartLocal.
package farm
