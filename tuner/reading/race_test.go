//go:build race

package reading

// raced says that the race detector runs, too, which ends a process with a status of its own when memory is short.
const raced = true
