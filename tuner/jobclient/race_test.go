//go:build race

package jobclient

// raced is true with the race detector, which changes the exit status of a process that runs out of memory.
const raced = true
