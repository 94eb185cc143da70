// Package bounds has the table of what a request to a tracker may hold: every text, list and map of every message, and
// each method's whole message. Checker checks a message before any of it is decoded. Another table has the memory that
// making each method's answer may take.
package bounds
