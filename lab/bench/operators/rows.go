package operators

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// row holds the measurements of one workload.
type row struct {
	Operator string `json:"operator"`
	// Shape identifies the workload within its operator.
	Shape         string         `json:"shape"`
	Batch         int64          `json:"batch"`
	Threads       int            `json:"threads"`
	CPU           string         `json:"cpu"`
	Version       string         `json:"version"`
	Machine       roofline.Rates `json:"machine"`
	Flop          float64        `json:"flop"`
	ConstantBytes int64          `json:"constant_bytes"`
	OtherBytes    int64          `json:"other_bytes"`
	// FlopSeconds and ByteSeconds are the limits. The former is 0 if the rate is unknown.
	FlopSeconds float64 `json:"flop_seconds"`
	ByteSeconds float64 `json:"byte_seconds"`
	// DefaultSeconds is the latency of the default schedule.
	DefaultSeconds float64  `json:"default_seconds"`
	DefaultPoint   string   `json:"default_point"`
	Failures       []string `json:"failures"`
	// Against lists the libraries that took turns on the workload.
	Against []against `json:"against,omitempty"`
}

// Same reports whether two rows have the same workload and threads.
func (r row) Same(o row) bool {
	return r.Operator == o.Operator && r.Shape == o.Shape && r.Batch == o.Batch && r.Threads == o.Threads
}

// limit returns the larger limit and its cause. It is 0 if a limit is unknown.
func (r row) limit() (seconds float64, by string) {
	if r.FlopSeconds == 0 {
		return 0, humanize.Missing
	}
	if r.FlopSeconds >= r.ByteSeconds {
		return r.FlopSeconds, "FLOP"
	}
	return r.ByteSeconds, "bytes"
}

// rows are the rows of one kind of machine.
type rows = bench.File[row]

// rowsName is the name of the rows' file.
const rowsName = "operators"

// have reports whether a row has the same workload, threads and version.
func have(r *rows, want row) bool {
	o := r.Find(want)
	return o != nil && want.Version != "" && o.Version == want.Version && o.DefaultSeconds > 0
}

// sorted sorts rows by threads and batch, then in the order of the set.
func sorted(list []row) []row {
	return slices.SortedStableFunc(slices.Values(list), func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Threads, b.Threads), cmp.Compare(a.Batch, b.Batch), cmp.Compare(place(a), place(b)))
	})
}

// place returns the position of a row's workload in the sets. Unknown ones come last.
func place(r row) int {
	at := 0
	for _, f := range slices.Concat(families, grouped, library, blocks) {
		for _, shape := range f.shapes {
			if r.Operator == f.name && r.Shape == shapeText(shape) {
				return at
			}
			at++
		}
	}
	return at
}
