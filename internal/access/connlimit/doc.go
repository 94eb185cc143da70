// Package connlimit limits the resources of a server's connections: their number, their streams, the memory of
// requests and answers, and stalled transfers. Start with Limits, which lists all bounds, and Guard, which enforces
// them.
package connlimit
