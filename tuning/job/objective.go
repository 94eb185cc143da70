package job

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Weigh picks tasks by a list of what each counts: a line has a weight and what Select picks by. Empty lines, and what
// follows a #, are passed over. The weights take the place of the tasks' own. Each line must pick something, and no
// task may be picked by two. The error begins with the number of the line.
func Weigh(tasks []Task, list io.Reader) ([]Task, error) {
	weights := map[int]float64{}
	lines := bufio.NewScanner(list)
	for number := 1; lines.Scan(); number++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := weigh(tasks, line, weights); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	var weighed []Task
	for _, t := range tasks {
		if weight, picked := weights[t.Index]; picked {
			t.Weight = weight
			weighed = append(weighed, t)
		}
	}
	if len(weighed) == 0 {
		return nil, errors.New("no task is named: write lines of a weight and a task, such as '2.5 dense'")
	}
	return weighed, nil
}

func weigh(tasks []Task, line string, weights map[int]float64) error {
	first, selection, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	weight, err := ParseWeight(first)
	if err != nil {
		return err
	}
	if selection = strings.TrimSpace(selection); selection == "" {
		return fmt.Errorf("%q names no task: write the weight, a space, and numbers, ranges or parts of names", line)
	}
	picked, err := Select(tasks, selection)
	if err != nil {
		return err
	}
	for _, t := range picked {
		if _, twice := weights[t.Index]; twice {
			return fmt.Errorf("task %d (%s) has a weight already: name it on one line", t.Index, t.Name)
		}
		weights[t.Index] = weight
	}
	return nil
}

// ParseWeight reads a weight: a finite number above 0.
func ParseWeight(text string) (float64, error) {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil || !(weight > 0) || math.IsInf(weight, 1) {
		return 0, fmt.Errorf("%q is not a weight: want a number above 0, such as 2.5", text)
	}
	return weight, nil
}
