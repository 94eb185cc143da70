// Package request runs this program again to serve one request in a separate, sandboxed process: the order
// goes to standard input, and the answer comes from standard output. Whatever the request does to its process
// affects that request only. Start with Server.
package request
