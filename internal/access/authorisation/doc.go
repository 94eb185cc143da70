// Package authorisation decides which calls a tracker answers: who calls, by a token or a certificate; whether the
// role may call the method, by the table in rules.go; how often; whether the job or session in question is the
// caller's; and what the audit log gets.
//
// A call is admitted when its headers arrive, before its message is read. Ownership is checked when the message has
// arrived. Begin with Gate.
package authorisation
