package jobclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Weight is the weight of the tasks that a selector picks; see Select.
type Weight struct {
	Weight float64
	Tasks  string
}

// ParseWeights reads a list of lines with a weight and a selector. It skips empty lines and comments after #.
// numbers holds the line number of each weight.
func ParseWeights(list io.Reader) (weights []Weight, numbers []int, err error) {
	lines := bufio.NewScanner(list)
	for number := 1; lines.Scan(); number++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		w, err := parseLine(line)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		weights, numbers = append(weights, w), append(numbers, number)
	}
	return weights, numbers, lines.Err()
}

func parseLine(line string) (w Weight, err error) {
	first, selection, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if w.Weight, err = ParseWeight(first); err != nil {
		return w, err
	}
	if w.Tasks = strings.TrimSpace(selection); w.Tasks == "" {
		return w, fmt.Errorf("%q names no task: write the weight, a space, and numbers, ranges or parts of names", line)
	}
	return w, nil
}

// WeighError identifies an invalid weight passed to Weigh.
type WeighError struct {
	Index int
	Err   error
}

func (e *WeighError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *WeighError) Unwrap() error { return e.Err }

// Weigh selects tasks and replaces their weights. Each weight must select something, and no task may be
// selected twice; otherwise it returns a *WeighError.
func Weigh(tasks []Task, weights []Weight) ([]Task, error) {
	weighs := map[int]float64{}
	for k, w := range weights {
		picked, err := Select(tasks, w.Tasks)
		if err != nil {
			return nil, &WeighError{k, err}
		}
		for _, t := range picked {
			if _, twice := weighs[t.Index]; twice {
				return nil, &WeighError{k, fmt.Errorf("task %d (%s) has a weight already: name it once", t.Index, t.Name)}
			}
			weighs[t.Index] = w.Weight
		}
	}
	var weighed []Task
	for _, t := range tasks {
		if weight, picked := weighs[t.Index]; picked {
			t.Weight = weight
			weighed = append(weighed, t)
		}
	}
	return weighed, nil
}

// WeighByList is Weigh with a list in the format of ParseWeights. Errors begin with the line number.
func WeighByList(tasks []Task, list io.Reader) ([]Task, error) {
	weights, numbers, err := ParseWeights(list)
	if err != nil {
		return nil, err
	}
	if len(weights) == 0 {
		return nil, errors.New("no task is named: write lines of a weight and a task, such as '2.5 dense'")
	}
	weighed, err := Weigh(tasks, weights)
	if wrong, ok := errors.AsType[*WeighError](err); ok {
		return nil, fmt.Errorf("line %d: %w", numbers[wrong.Index], wrong.Err)
	}
	return weighed, err
}

// ParseWeight parses a weight: a finite positive number.
func ParseWeight(text string) (float64, error) {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil || !(weight > 0) || math.IsInf(weight, 1) {
		return 0, fmt.Errorf("%q is not a weight: want a number above 0, such as 2.5", text)
	}
	return weight, nil
}

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
