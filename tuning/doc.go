// Package tuning is how a program has models tuned: it hands them to a tracker, follows the job, and looks up the
// fastest schedules. The packages beside it are its parts. Begin with Tune; farm.Tune does the same in one process.
package tuning
