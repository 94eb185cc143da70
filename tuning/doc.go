// Package tuning lets programs tune models: it submits them to a tracker, follows the job, and looks up the
// fastest schedules. Its subpackages are its parts. Start with Tune; farm.Tune does the same in one process.
package tuning
