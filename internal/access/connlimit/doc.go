// Package connlimit limits what connections may hold of a server: their number, their streams, the memory of requests
// and answers, and time in which nothing moves. Begin with Limits, which names all bounds, and Guard, which keeps
// them.
package connlimit
