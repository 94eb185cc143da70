package trials

import "fmt"

// UniqueName returns name, or, when taken has it already, name with a number behind it; taken is brought up to date.
func UniqueName(taken map[string]int, name string) string {
	taken[name]++
	if n := taken[name]; n > 1 {
		return UniqueName(taken, fmt.Sprintf("%s #%d", name, n))
	}
	return name
}
