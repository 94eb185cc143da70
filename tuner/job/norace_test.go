//go:build !race

package job

// raced is false without the race detector.
const raced = false
