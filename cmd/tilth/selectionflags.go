package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// selectionFlags selects the models and tasks whose latency to minimize, and their weights.
type selectionFlags struct {
	model   modelFlags
	tasks   string
	weights string
	list    string
	// listed is the content of the list file.
	listed []byte
}

func (f *selectionFlags) add(c *cobra.Command) {
	f.model.add(c)
	c.Flags().StringVar(&f.weights, "weight", "", "weight of each model, in order: `numbers` such as 3,1 (default 1 each)")
	c.Flags().StringVar(&f.tasks, "tasks", "", "tasks to tune: `numbers`, ranges or parts of names, such as 0,3-5,dense (default all)")
	c.Flags().StringVar(&f.list, "task-weights", "", "`file` of tasks to tune, with weights: lines such as '2.5 dense'")
	c.MarkFlagsMutuallyExclusive("task-weights", "tasks")
	c.MarkFlagsMutuallyExclusive("task-weights", "weight")
}

// modelWeights returns the weight of each model.
func (f *selectionFlags) modelWeights(models int) ([]float64, error) {
	weights := slices.Repeat([]float64{1}, models)
	if f.weights == "" {
		return weights, nil
	}
	parts := strings.Split(f.weights, ",")
	if len(parts) != models {
		return nil, usagef("--weight %s: want a number for each of the %d models, in their order, such as 3,1", f.weights, models)
	}
	for i, part := range parts {
		weight, err := jobclient.ParseWeight(strings.TrimSpace(part))
		if err != nil {
			return nil, usagef("--weight %s: %w", f.weights, err)
		}
		weights[i] = weight
	}
	return weights, nil
}

// load reads the models with a storage type and selects their tasks. It may be called again.
func (f *selectionFlags) load(paths []string, storage array.Storage) (*jobclient.Objective, error) {
	weights, err := f.modelWeights(len(paths))
	if err != nil {
		return nil, err
	}
	o := &jobclient.Objective{Storage: storage}
	read := 0
	err = f.model.loadAll(paths, storage, func(path string, p *program.Program) error {
		o.Add(modelName(path), p, weights[read])
		read++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.Tasks, err = f.choose(o.Tasks); err == nil && len(o.Tasks) == 0 {
		err = fmt.Errorf("%s: it computes nothing, so there is nothing to tune", strings.Join(paths, ", "))
	}
	return o, err
}

func (f *selectionFlags) choose(tasks []jobclient.Task) ([]jobclient.Task, error) {
	if f.list == "" {
		return jobclient.Select(tasks, f.tasks)
	}
	if f.listed == nil {
		if err := f.readList(); err != nil {
			return nil, fmt.Errorf("--task-weights: %w", err)
		}
	}
	chosen, err := jobclient.WeighByList(tasks, bytes.NewReader(f.listed))
	if err != nil {
		return nil, fmt.Errorf("--task-weights: %s: %w", f.list, err)
	}
	return chosen, nil
}

// maxListBytes bounds the list file.
const maxListBytes = 16 << 20

// readList reads the list of tasks and weights.
func (f *selectionFlags) readList() error {
	list := f.model.stdin()
	if f.list != stdio {
		file, err := os.Open(f.list)
		if err != nil {
			return err
		}
		defer file.Close()
		list = file
	}
	data, err := io.ReadAll(io.LimitReader(list, maxListBytes+1))
	if err == nil && len(data) > maxListBytes {
		err = fmt.Errorf("%s has more than %d bytes", f.list, maxListBytes)
	}
	f.listed = data
	return err
}
