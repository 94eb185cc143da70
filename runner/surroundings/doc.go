// Package surroundings reads what a machine shows of what makes it faster or slower: temperatures, clocks and who sets
// them, and how often it was throttled. What a machine does not show is left out; nothing here fails.
package surroundings
