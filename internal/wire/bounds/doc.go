// Package bounds has the one table of what a request to a tracker may hold: every text, list and map of every message,
// and each method's whole message. Checker holds what comes over the wire against it, before anything of it is
// decoded. It also says what making each method's answer may take.
package bounds
