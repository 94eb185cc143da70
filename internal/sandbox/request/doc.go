// Package request has this very program serve one request in a process apart, in a sandbox: an order goes in on
// standard input, and an answer comes out on standard output. Whatever the request makes of the process, it costs the
// request only. Begin with Server.
package request
