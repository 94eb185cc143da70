// Package reading makes the tasks of models that nobody vouches for, in a process apart from the tuner. That process
// is this program again and serves one request on its standard input and output (Serve); Reader starts it in a sandbox
// and reads its answer.
package reading
