//go:build !race

package reading

// raced is false without the race detector.
const raced = false
