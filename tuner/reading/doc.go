// Package reading extracts the tasks of untrusted models in a separate process. That process is this program
// again and serves one request on standard input and output (Serve). Reader starts it in a sandbox and reads
// its answer.
package reading
