// Package authz authorizes RPCs. It identifies the caller by a token or certificate, checks the role against the
// (tilth.v1.call) method option, limits the rate of calls, checks the ownership of jobs and sessions, and writes the
// audit log.
//
// A call is admitted when its headers arrive, before its message is read. Ownership is checked once the message has
// arrived. Start with Gate.
package authz
