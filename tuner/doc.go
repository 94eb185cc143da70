// Package tuner searches for the best schedules. It contains the algorithms that propose candidates of a task
// and learn from their measurements, the choice of the next task, and the agent that runs both for a job. It
// depends on spaces and cost models, but not on sketches. Start with Handler; search.go lists the algorithms.
package tuner
