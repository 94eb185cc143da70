package kerneltest

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
)

// Case is a schedule with its input data.
type Case struct {
	Workload *expr.Workload
	Schedule *schedule.Schedule
	Workers  int
	Args     []*array.Array
}

// GoString is short because a failing property shows all cases of its batch. The text of the failing case is
// reported.
func (c Case) GoString() string { return fmt.Sprintf("case of %d stages", len(c.Workload.Stages)) }

// Text returns the file format of a case.
func (c Case) Text() string {
	return fmt.Sprintf("%s%sworkers %d\n", c.Workload.Text(), c.Schedule.Trace(), c.Workers)
}

// ReadCase reads a case from a file with its Text, and draws its data.
func ReadCase(file string) (Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Case{}, err
	}
	workload, rest, _ := strings.Cut(string(data), "tilth-trace")
	trace, workers, _ := strings.Cut(rest, "workers ")
	var c Case
	if _, err := fmt.Sscan(workers, &c.Workers); err != nil {
		return c, fmt.Errorf("number of workers: %w", err)
	}
	if c.Workload, err = expr.Parse(workload); err != nil {
		return c, err
	}
	c.Args = Fill(c.Workload, 1)
	c.Schedule, err = schedule.Replay(c.Workload, []byte("tilth-trace"+trace))
	return c, err
}

// Wrong describes a difference from the evaluator's result beyond the schedule's tolerance, or returns "".
func (c Case) Wrong(got []*array.Array) string {
	want, err := expr.Evaluate(c.Workload, c.Args)
	if err != nil {
		return fmt.Sprintf("the evaluator fails: %v", err)
	}
	c.ignore(got, want)
	allowed := tolerance.Tolerances(c.Workload)
	for k, o := range want {
		var text string
		growth := c.Schedule.ErrorGrowth()
		if o.DType.IsInt() && o.DType.Bytes() < 8 {
			text = integerDifference(got[k], o, allowed[k], growth)
		} else {
			text = Difference(got[k], o, allowed[k].Times(growth))
		}
		if text != "" {
			return fmt.Sprintf("output %d: %s", k, text)
		}
	}
	return ""
}

// ignore accepts the elements beyond the limits of axes.
func (c Case) ignore(got, want []*array.Array) {
	counts := c.Workload.Counts()
	if len(counts) == 0 {
		return
	}
	for k, t := range c.Workload.Inputs {
		if _, ok := counts[t]; ok {
			counts[t] = c.Args[k].Int(0)
		}
	}
	for k, t := range c.Workload.Outputs {
		if got[k].Len() != want[k].Len() {
			continue
		}
		eachBeyond(t.Shape, limits(c.Workload, t, counts), func(i int64) {
			for _, a := range []*array.Array{got[k], want[k]} {
				clear(a.Data[i*t.DType.Bytes() : (i+1)*t.DType.Bytes()])
			}
		})
	}
}

// integerDifference is like Difference, but for integers.
func integerDifference(got, want *array.Array, o tolerance.Tolerance, growth float64) string {
	largest := 0.0
	for i := range want.Len() {
		largest = max(largest, math.Abs(want.Float(i)))
	}
	allowed := o.OfIntegers(growth, largest)
	for i := range min(got.Len(), want.Len()) {
		if d := math.Abs(got.Float(i) - want.Float(i)); d > allowed*largest {
			return fmt.Sprintf("element %d of %v%v is %v, not %v", i, want.DType, want.Shape, got.Float(i), want.Float(i))
		}
	}
	if got.Len() != want.Len() {
		return Difference(got, want, 0)
	}
	return ""
}

// Difference describes where got differs from want by more than a tolerance relative to the largest value, or returns
// "". If all values are below one, the tolerance is relative to one: sums that cancel keep the rounding errors of
// their terms.
func Difference(got, want *array.Array, tolerance float64) string {
	if got.Len() != want.Len() {
		return "the gaps between the elements of an output were written"
	}
	scale := 1.0
	for i := range want.Len() {
		if v := math.Abs(want.Float(i)); !math.IsInf(v, 0) && v > scale {
			scale = v
		}
	}
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		same := g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tolerance*scale
		if want.DType.IsInt() || want.DType == array.Bool {
			same = got.Int(i) == want.Int(i)
		}
		if !same {
			return fmt.Sprintf("element %d of %v%v is %v, not %v", i, want.DType, want.Shape, g, w)
		}
	}
	return ""
}
