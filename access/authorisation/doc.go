// Package authorisation is the one place that decides which calls a tracker answers: who calls (a token or a
// certificate), whether that role may call the method, whether what the call is about is the caller's, and what of it
// the audit log gets.
//
// A call is admitted when its headers have come, before anything of its message is read; whose job or session it is
// about is looked at when the message is there.
package authorisation
