// Package execute runs model packages in a process of their own: what nobody vouches for does not share one with a
// runner. The process is this program again, which serves one request on its standard input and output (see Serve);
// Run starts it in a sandbox and reads its answer.
package execute
