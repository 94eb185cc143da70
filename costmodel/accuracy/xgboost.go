package accuracy

import (
	"bytes"
	"context"
	_ "embed" // the script
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/internal/atomicfile"
)

//go:embed xgboost.py
var script string

// XGBoost is the Python package xgboost with trees grown as ours are, for comparison.
type XGBoost struct {
	Label string
	// Python is the interpreter that has the packages xgboost and numpy; Dir a folder for files between it and us.
	Python, Dir   string
	Trees, Leaves int
	Loss          costmodel.Loss
	Threads       int
}

// Name is the label.
func (x XGBoost) Name() string { return x.Label }

// Rank trains in a process of its own.
func (x XGBoost) Rank(ctx context.Context, train, test []Task) ([][]float64, error) {
	in, out := filepath.Join(x.Dir, "in.npz"), filepath.Join(x.Dir, "out.npz")
	if err := atomicfile.Write(in, func(w io.Writer) error { return npz.Write(w, x.arrays(train, test)) }); err != nil {
		return nil, err
	}
	loss := "throughput"
	if x.Loss == costmodel.Order {
		loss = "order"
	}
	c := exec.CommandContext(ctx, x.Python, "-c", script, in, out, strconv.Itoa(x.Trees), strconv.Itoa(x.Leaves), loss, strconv.Itoa(x.Threads))
	c.Env = append(os.Environ(), "OMP_WAIT_POLICY=passive") // threads that spin starve one another on a machine that others use, too
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s with the packages xgboost and numpy: %w: %s", x.Python, err, lines[len(lines)-1])
	}
	defer os.Remove(out)
	arrays, err := npz.ReadFile(out)
	if err != nil {
		return nil, err
	}
	return divided(arrays["scores"], test)
}

// arrays are the rows and labels of the tasks to train on, group by group, and the rows to score.
func (x XGBoost) arrays(train, test []Task) map[string]*array.Array {
	var rows, unseen [][]float32
	var labels []float32
	groups := array.New(array.Int32, int64(len(train)))
	for k, t := range train {
		groups.SetInt(int64(k), int64(len(t.Samples)))
		rows = append(rows, t.rows()...)
		labels = append(labels, costmodel.Labels(t.Samples)...)
	}
	for _, t := range test {
		unseen = append(unseen, t.rows()...)
	}
	return map[string]*array.Array{"rows": matrix(rows), "labels": vector(labels), "groups": groups, "test": matrix(unseen)}
}

func matrix(rows [][]float32) *array.Array {
	width := 0
	if len(rows) > 0 {
		width = len(rows[0])
	}
	a := array.New(array.Float32, int64(len(rows)), int64(width))
	for i, r := range rows {
		for j, v := range r {
			a.SetFloat(int64(i*width+j), float64(v))
		}
	}
	return a
}

func vector(values []float32) *array.Array {
	a := array.New(array.Float32, int64(len(values)))
	for i, v := range values {
		a.SetFloat(int64(i), float64(v))
	}
	return a
}

// divided gives each task its scores.
func divided(scores *array.Array, test []Task) ([][]float64, error) {
	list, at := make([][]float64, len(test)), int64(0)
	for k, t := range test {
		for range t.Samples {
			if scores == nil || at == scores.Len() {
				return nil, fmt.Errorf("%d scores are too few", at)
			}
			list[k] = append(list[k], scores.Float(at))
			at++
		}
	}
	return list, nil
}
