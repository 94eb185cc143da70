//go:build !race

package jobclient

// raced is false without the race detector.
const raced = false
