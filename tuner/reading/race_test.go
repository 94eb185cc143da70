//go:build race

package reading

// raced is true with the race detector, which changes the exit status of a process that runs out of memory.
const raced = true
