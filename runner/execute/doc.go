// Package execute runs model packages, which nobody vouches for, in a process apart from the runner. That process is
// this program again and serves one request on its standard input and output (Serve); Run starts it in a sandbox and
// reads its answer.
package execute
