package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/bench/jsonlines"
	"github.com/tilth-dev/tilth/compiler/roofline"
)

// row is what was measured of one workload.
type row struct {
	Operator string `json:"operator"`
	// Shape is what tells workloads of one operator apart, Batch the batch size of the set, 0 for tasks of a model.
	Shape   string `json:"shape"`
	Batch   int64  `json:"batch"`
	Threads int    `json:"threads"`
	// Calls is how often a model executes the workload.
	Calls         int            `json:"calls"`
	CPU           string         `json:"cpu"`
	Version       string         `json:"version"`
	Machine       roofline.Rates `json:"machine"`
	Flop          float64        `json:"flop"`
	ConstantBytes int64          `json:"constant_bytes"`
	OtherBytes    int64          `json:"other_bytes"`
	// FlopSeconds and ByteSeconds are the limits.
	FlopSeconds float64 `json:"flop_seconds"`
	ByteSeconds float64 `json:"byte_seconds"`
	// DefaultSeconds and TunedSeconds are the latencies of the default schedule and of the fastest; the latter is 0
	// without tuning.
	DefaultSeconds float64  `json:"default_seconds"`
	DefaultPoint   string   `json:"default_point"`
	TunedSeconds   float64  `json:"tuned_seconds"`
	TunedPoint     string   `json:"tuned_point"`
	TunedFor       string   `json:"tuned_for"`
	Failures       []string `json:"failures"`
}

// same reports whether two rows are of the same workload and threads.
func (r row) same(o row) bool {
	return r.Operator == o.Operator && r.Shape == o.Shape && r.Batch == o.Batch && r.Threads == o.Threads
}

// limit is the larger of the limits, and what it comes from.
func (r row) limit() (seconds float64, by string) {
	if r.FlopSeconds >= r.ByteSeconds {
		return r.FlopSeconds, "FLOP"
	}
	return r.ByteSeconds, "bytes"
}

// rows are those of all runs, a line of JSON each in a file; the last of equal workload and threads counts.
type rows struct {
	path string
	list []row
}

func openRows(dir string) (*rows, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &rows{path: filepath.Join(dir, "rows.jsonl")}
	list, err := jsonlines.Read[row](r.path)
	r.list = list
	return r, err
}

// add appends rows to the file.
func (r *rows) add(list []row) error {
	if err := jsonlines.Append(r.path, list); err != nil {
		return err
	}
	r.list = append(r.list, list...)
	return nil
}

// have reports whether the workload was measured on as many threads with the same version and tuning time.
func (r *rows) have(want row) bool {
	return want.Version != "" && slices.ContainsFunc(r.list, func(o row) bool {
		return o.same(want) && o.Version == want.Version && o.TunedFor == want.TunedFor && o.DefaultSeconds > 0
	})
}

// latest has the last row of each workload and number of threads: by threads and batch, then in the order of the set.
func (r *rows) latest() []row {
	var list []row
	for _, one := range slices.Backward(r.list) {
		if !slices.ContainsFunc(list, one.same) {
			list = append(list, one)
		}
	}
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Threads, b.Threads), cmp.Compare(a.Batch, b.Batch), cmp.Compare(place(a), place(b)))
	})
	return list
}

// place is the position of a row's workload in the sets; tasks of models come last.
func place(r row) int {
	at := 0
	for _, f := range slices.Concat(families, grouped) {
		for _, shape := range f.shapes {
			if r.Operator == f.name && r.Shape == shapeText(shape) {
				return at
			}
			at++
		}
	}
	return at
}
