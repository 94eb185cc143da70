package accuracy

import "github.com/tilth-dev/tilth/compiler/expr"

// nearBy is the distance of workloads, in mean doublings of their sizes, below which they are considered
// similar.
const nearBy = 0.35

// groupsOf numbers groups of tasks that are similar, directly or through others. It keeps similar tasks, such as the
// layers of a network that differ by a few channels, in one fold.
func groupsOf(tasks []Task) (numbers []int, groups int) {
	shapes := make([]expr.Shape, len(tasks))
	numbers = make([]int, len(tasks))
	for k, t := range tasks {
		shapes[k], numbers[k] = t.Shape, k
		for i := range k {
			if numbers[i] != numbers[k] && shapes[k].Distance(shapes[i]) < nearBy {
				join(numbers[:k+1], numbers[i], numbers[k])
			}
		}
	}
	return renumbered(numbers)
}

// join merges two groups under the lower number.
func join(numbers []int, a, b int) {
	for k, n := range numbers {
		if n == a || n == b {
			numbers[k] = min(a, b)
		}
	}
}

// renumbered numbers the groups in order of first appearance.
func renumbered(numbers []int) (list []int, groups int) {
	known := map[int]int{}
	for _, n := range numbers {
		if _, met := known[n]; !met {
			known[n] = len(known)
		}
		list = append(list, known[n])
	}
	return list, len(known)
}
