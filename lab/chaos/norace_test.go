//go:build !race

package chaos

var raceFlags []string
