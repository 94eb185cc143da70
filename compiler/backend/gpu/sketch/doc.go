// Package sketch derives the candidate schedules of a workload on a GPU. A sketch is a room of its own, with what it
// matches, its parameters, what is legal, what it costs and how it is applied. Begin to read in sketches.go, which
// lists them.
package sketch
