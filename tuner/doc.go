// Package tuner searches for the best schedules: algorithms that propose candidates of a task and learn from their
// measurements, the choice of the next task, and the agent that does both for a job. It knows spaces and cost models,
// and no sketch. Begin with Handler; search.go lists the algorithms.
package tuner
