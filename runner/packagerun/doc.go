// Package packagerun runs untrusted model packages in a separate process. That process is this program again and
// serves one request on standard input and output (Serve). Run starts it in a sandbox and reads its answer.
package packagerun
