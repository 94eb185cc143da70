package accuracy

import (
	"bytes"
	"cmp"
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
	"github.com/tilth-dev/tilth/internal/disk"
)

//go:embed xgboost.py
var script string

// XGBoost ranks with the Python package xgboost, trained on the same samples with comparable trees.
type XGBoost struct {
	Label string
	// Python is an interpreter with the packages xgboost and numpy. Dir is a folder for exchanged files.
	Python, Dir string
	// Options are those of the project's own model. Trees, leaves, rate, loss and trust apply. All but trust are
	// required; trust defaults to 1.
	Options costmodel.Options
	Threads int
}

// Name returns the label.
func (x XGBoost) Name() string { return x.Label }

// Rank trains in a separate process.
func (x XGBoost) Rank(ctx context.Context, train, test []Task) ([][]float64, error) {
	arrays, err := x.arrays(train, test)
	if err != nil {
		return nil, err
	}
	in, out := filepath.Join(x.Dir, "in.npz"), filepath.Join(x.Dir, "out.npz")
	if err := disk.WriteFile(in, func(w io.Writer) error { return npz.Write(w, arrays) }); err != nil {
		return nil, err
	}
	loss := "squared"
	if x.Options.Loss == costmodel.Order {
		loss = "order"
	}
	o := x.Options.For(len(train))
	c := exec.CommandContext(ctx, x.Python, "-c", script, in, out, strconv.Itoa(o.Trees), strconv.Itoa(o.Leaves),
		strconv.FormatFloat(x.Options.LearningRate, 'g', -1, 64), loss, strconv.Itoa(x.Threads))
	c.Env = append(os.Environ(), "OMP_WAIT_POLICY=passive") // spinning threads starve one another on a shared machine
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s with the packages xgboost and numpy: %w: %s", x.Python, err, lines[len(lines)-1])
	}
	defer os.Remove(out)
	results, err := npz.ReadFile(out)
	if err != nil {
		return nil, err
	}
	return x.divided(results["gains"], test)
}

// arrays returns the training data of the project's own trees, and the rows to predict.
func (x XGBoost) arrays(train, test []Task) (map[string]*array.Array, error) {
	d, _, err := costmodel.Data(Samples(train), x.Options.Loss)
	if err != nil {
		return nil, err
	}
	groups := array.New(array.Int32, int64(len(d.Groups)))
	for k, n := range d.Groups {
		groups.SetInt(int64(k), int64(n))
	}
	offsets := make([]float32, len(d.Offsets))
	for k, v := range d.Offsets {
		offsets[k] = float32(v)
	}
	var unseen []float32
	for _, t := range test {
		for _, row := range t.rows() {
			unseen = append(unseen, row.Values...)
		}
	}
	return map[string]*array.Array{"rows": matrix(d.Rows, len(d.Features)), "labels": vector(d.Labels), "weights": vector(d.Weights),
		"groups": groups, "offsets": vector(offsets), "test": matrix(unseen, len(d.Features))}, nil
}

func matrix(values []float32, width int) *array.Array {
	a := array.New(array.Float32, int64(len(values)/width), int64(width))
	for i, v := range values {
		a.SetFloat(int64(i), float64(v))
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

// divided splits the gains over the analytic cost by task.
func (x XGBoost) divided(gains *array.Array, test []Task) ([][]float64, error) {
	list, err := speeds(nil, test)
	if err != nil {
		return nil, err
	}
	at := int64(0)
	for _, scores := range list {
		for i := range scores {
			if gains == nil || at == gains.Len() {
				return nil, fmt.Errorf("%d scores are too few", at)
			}
			scores[i] += cmp.Or(x.Options.Trust, 1) * gains.Float(at)
			at++
		}
	}
	return list, nil
}
