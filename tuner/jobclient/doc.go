// Package jobclient tunes models through a tracker: it turns compiled models into weighted tasks and a job
// specification, submits the job, follows it, and reads back the fastest schedules. Start with Tune.
//
// A ModelReader extracts the tasks of untrusted models in a sandboxed process. That process is this program again and
// serves one request on standard input and output.
package jobclient
