package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// write trains a model on all tasks, or writes the training data.
func (f *costModelFlags) write(ctx context.Context, progress io.Writer, tasks []replay.MeasuredTask) error {
	samples := replay.Samples(tasks)
	if f.csv != "" {
		if err := f.writeCSV(samples); err != nil {
			return err
		}
		fmt.Fprintf(progress, "wrote %s (%d tasks)\n", f.csv, len(tasks))
	}
	if f.output == "" {
		return nil
	}
	m, err := costmodel.Train(ctx, nil, samples, f.options)
	if err != nil {
		return err
	}
	if err := filesystem.WriteFile(f.output, m.Write); err != nil {
		return err
	}
	fmt.Fprintf(progress, "wrote %s (%d trees, %d candidates of %d tasks)\n", f.output, m.Trees(), len(samples), len(tasks))
	return nil
}

// writeCSV writes a row for each candidate: its task's number, its gain over the analytic cost relative to its task,
// its weight, and its features.
func (f *costModelFlags) writeCSV(samples []costmodel.Sample) error {
	d, level, err := costmodel.Data(samples, costmodel.Latency)
	if err != nil {
		return err
	}
	return filesystem.WriteFile(f.csv, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		fmt.Fprintf(b, "task,gain,weight,%s\n", strings.Join(d.Features, ","))
		at := 0
		for task, n := range d.Groups {
			for range n {
				fmt.Fprintf(b, "%d,%s", task, csvRow(d, at, level))
				at++
			}
		}
		return b.Flush()
	})
}

func csvRow(d *gbdt.Data, at int, level float64) string {
	n := len(d.Features)
	fields := make([]string, 0, n+2)
	for _, v := range append([]float32{d.Labels[at] + float32(level), d.Weights[at]}, d.Rows[at*n:(at+1)*n]...) {
		fields = append(fields, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	return strings.Join(fields, ",") + "\n"
}
