// Package job has models tuned by a tracker: it turns compiled models into weighted tasks and a job specification,
// submits the job, follows it, and reads back the fastest schedules. Begin with Tune. farm.Tune does the same in one
// process.
package job
