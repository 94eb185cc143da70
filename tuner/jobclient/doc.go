// Package jobclient has models tuned by a tracker: it turns compiled models into weighted tasks and a job
// specification, submits the job, follows it, and reads back the fastest schedules. Begin with Tune. farm.Tune does
// the same in one process.
//
// A ModelReader extracts the tasks of untrusted models in a sandboxed process. That process is this program again and
// serves one request on standard input and output.
package jobclient
