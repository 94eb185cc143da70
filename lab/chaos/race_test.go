//go:build race

package chaos

// raceFlags have the farm's processes built with the race detector when the tests are; what it finds counts as a
// crash.
var raceFlags = []string{"-race"}
