package progress

import "fmt"

// UniqueName returns name, followed by a number if taken contains it, and updates taken.
func UniqueName(taken map[string]int, name string) string {
	taken[name]++
	if n := taken[name]; n > 1 {
		return UniqueName(taken, fmt.Sprintf("%s #%d", name, n))
	}
	return name
}
