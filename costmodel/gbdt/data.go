package gbdt

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Data is a training set.
type Data struct {
	// Features names the columns.
	Features []string
	// Rows holds len(Labels) rows of len(Features) finite values, row by row.
	Rows []float32
	// Labels holds the value to predict for each row.
	Labels []float32
	// Groups holds the lengths of consecutive runs of rows that ranking losses compare with each other: the
	// candidates of one task. Nil means one group.
	Groups []int
	// Weights holds the positive weight of each row; nil means equal weights.
	Weights []float32
	// Offsets holds a known part of the prediction of each row (LightGBM's init_score). Trees learn the rest.
	// A model does not contain the offsets, so callers must add them to its predictions. Nil means 0.
	Offsets []float64
}

// NumRows returns the number of samples.
func (d *Data) NumRows() int { return len(d.Labels) }

// row returns the features of sample i.
func (d *Data) row(i int) []float32 {
	n := len(d.Features)
	return d.Rows[i*n : (i+1)*n]
}

// check returns an error if the data are invalid.
func (d *Data) check() error {
	n, rows := len(d.Features), len(d.Labels)
	switch {
	case n == 0:
		return fmt.Errorf("gbdt: the data has no features")
	case rows == 0:
		return fmt.Errorf("gbdt: the data has no rows")
	case len(d.Rows) != n*rows:
		return fmt.Errorf("gbdt: %d values are not %d rows of %d features", len(d.Rows), rows, n)
	}
	if err := checkNames(d.Features); err != nil {
		return fmt.Errorf("gbdt: %w", err)
	}
	for i, v := range d.Rows {
		if !finite(v) {
			return fmt.Errorf("gbdt: row %d: feature %q is %v, not a finite number", i/n, d.Features[i%n], v)
		}
	}
	for i, v := range d.Labels {
		if !finite(v) {
			return fmt.Errorf("gbdt: row %d: the label is %v, not a finite number", i, v)
		}
	}
	if err := d.checkWeights(); err != nil {
		return err
	}
	if err := d.checkOffsets(); err != nil {
		return err
	}
	return d.checkGroups()
}

func (d *Data) checkWeights() error {
	if d.Weights != nil && len(d.Weights) != len(d.Labels) {
		return fmt.Errorf("gbdt: %d weights for %d rows", len(d.Weights), len(d.Labels))
	}
	for i, w := range d.Weights {
		if !finite(w) || w <= 0 {
			return fmt.Errorf("gbdt: row %d: the weight is %v: give more than 0", i, w)
		}
	}
	return nil
}

func (d *Data) checkOffsets() error {
	if d.Offsets != nil && len(d.Offsets) != len(d.Labels) {
		return fmt.Errorf("gbdt: %d offsets for %d rows", len(d.Offsets), len(d.Labels))
	}
	for i, v := range d.Offsets {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("gbdt: row %d: the offset is %v, not a finite number", i, v)
		}
	}
	return nil
}

// offset returns the offset of row i.
func (d *Data) offset(i int) float64 {
	if d.Offsets == nil {
		return 0
	}
	return d.Offsets[i]
}

// weight returns the weight of row i.
func (d *Data) weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return float64(d.Weights[i])
}

func (d *Data) checkGroups() error {
	if d.Groups == nil {
		return nil
	}
	sum := 0
	for i, n := range d.Groups {
		if n < 0 {
			return fmt.Errorf("gbdt: group %d has %d rows", i, n)
		}
		sum += n
	}
	if sum != len(d.Labels) {
		return fmt.Errorf("gbdt: the groups have %d rows together, the data has %d", sum, len(d.Labels))
	}
	return nil
}

// checkNames returns an error if LightGBM text cannot represent a feature name.
func checkNames(features []string) error {
	for _, name := range features {
		bad := func(r rune) bool { return r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
		if name == "" || strings.ContainsFunc(name, bad) {
			return fmt.Errorf("feature %q: give a name of printable characters without spaces and =", name)
		}
	}
	return nil
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
