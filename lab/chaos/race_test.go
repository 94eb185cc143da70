//go:build race

package chaos

// raceFlags build the farm's processes with the race detector if the tests use it. Detected races count as crashes.
var raceFlags = []string{"-race"}
