// Package tuner searches for the best schedules: algorithms that propose candidates of a task and learn from what
// became of them, the choice of which task to spend the next batch on, and the agent that does both for a job.
package tuner
