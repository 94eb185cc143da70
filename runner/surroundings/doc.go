// Package surroundings reads conditions that affect a machine's speed: temperatures, clocks and their
// governors, and throttling. Unavailable values are omitted; nothing here fails. Start with Reader.
package surroundings
