// Package surroundings reads what may make a machine faster or slower: temperatures, clocks and their governors, and
// throttling. What a machine does not show is left out; nothing here fails. Begin with Reader.
package surroundings
