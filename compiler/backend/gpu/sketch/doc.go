// Package sketch derives the candidate schedules of a workload on a GPU. A sketch defines what it matches, its
// parameters, their legality, their cost and how they are applied. Start with sketches.go, which lists them.
package sketch
