package jobclient

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Select selects tasks by a comma-separated list of numbers (3), ranges (2-5) and parts of names (conv2d). An
// empty list selects all. Every element must select something.
func Select(tasks []Task, selection string) ([]Task, error) {
	if selection == "" {
		return tasks, nil
	}
	picked := map[int]bool{}
	for _, part := range strings.Split(selection, ",") {
		match, err := matcher(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("tasks %q: %w", selection, err)
		}
		found := false
		for i, t := range tasks {
			if match(t) {
				picked[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("tasks %q: no task is %q: see 'tilth tasks MODEL'", selection, part)
		}
	}
	var selected []Task
	for i, t := range tasks {
		if picked[i] {
			selected = append(selected, t)
		}
	}
	return slices.Clip(selected), nil
}

func matcher(part string) (func(Task) bool, error) {
	if part == "" {
		return nil, errors.New("a part is empty: separate numbers, ranges and names with single commas")
	}
	from, to, isRange := strings.Cut(part, "-")
	low, err := strconv.Atoi(from)
	if err != nil {
		return func(t Task) bool { return strings.Contains(t.Name, part) }, nil
	}
	high := low
	if isRange {
		if high, err = strconv.Atoi(to); err != nil || high < low {
			return nil, fmt.Errorf("%q is not a range: write the lower number, a dash, the higher", part)
		}
	}
	return func(t Task) bool { return low <= t.Index && t.Index <= high }, nil
}
