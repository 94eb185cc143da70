package frontend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/program"
)

const (
	// minStep is the ratio between consecutive kernel sizes if the distribution of extents is unknown, and
	// maxStep the limit to which it grows if there would be too many kernels. closeStep, which is tried first, is
	// a ratio of 2 with additional kernels for heights.
	closeStep, minStep, maxStep = 1, 2, 1 << 24
	// minShare is the weight of kernels without known executions, since some may still occur.
	minShare = 1e-3
	// maxVariants limits the kernels of a task, one for each combination of caps.
	maxVariants = 32
)

// heights are caps in addition to the powers of 2: so few rows form one tile or two, and each unused row counts.
// bert-small takes 1.4 times as long for 5 tokens in kernels made for 8 as in those for 5, and 1.2 times as long
// for 10 in those for 16.
var heights = []int64{6, 10}

// quantiles of the extents of executions become caps.
var quantiles = []float64{0.1, 0.25, 0.5, 0.75, 0.9}

// caps returns the extents, ascending and below the maximum, that get kernels of their own. They grow by step if
// the distribution is unknown.
func (b Bounds) caps(step int64) ([]int64, error) {
	var caps []int64
	switch {
	case b.Caps != nil:
		caps = slices.Clone(b.Caps)
	case len(b.Frequencies) > 0:
		for _, q := range quantiles {
			caps = append(caps, b.quantile(q))
		}
	case b.Min == 0: // extents that may be empty grow from run to run, and kernels accept any
	default:
		ratio := max(step, minStep)
		for n := b.Max / ratio; n > b.Min; n /= ratio {
			caps = append(caps, n)
		}
		caps = append(caps, b.Min)
		for _, n := range heights {
			if step == closeStep && n > b.Min && n <= b.Max/ratio {
				caps = append(caps, n)
			}
		}
	}
	slices.Sort(caps)
	caps = slices.Compact(caps)
	for _, n := range caps {
		if n < max(b.Min, 1) || n > b.Max {
			return nil, fmt.Errorf("there cannot be kernels for up to %d, which is not within %d..%d", n, max(b.Min, 1), b.Max)
		}
	}
	for n := range b.Frequencies {
		if n < b.Min || n > b.Max {
			return nil, fmt.Errorf("an extent of %d is not within %d..%d", n, b.Min, b.Max)
		}
	}
	return slices.DeleteFunc(caps, func(n int64) bool { return n == b.Max }), nil
}

// quantile returns the smallest extent that the given share of all executions does not exceed.
func (b Bounds) quantile(share float64) int64 {
	left := 0.0
	for _, f := range b.Frequencies {
		left += f * share
	}
	for _, n := range slices.Sorted(maps.Keys(b.Frequencies)) {
		if left -= b.Frequencies[n]; left <= 0 {
			return n
		}
	}
	return b.Max
}

// shares returns the share of executions for each cap, followed by that of the maximum; all are equal if the
// distribution is unknown.
func (b Bounds) shares(caps []int64) []float64 {
	shares := make([]float64, len(caps)+1)
	total := 0.0
	for n, f := range b.Frequencies {
		at, _ := slices.BinarySearch(caps, n)
		shares[at] += f
		total += f
	}
	for k := range shares {
		if total > 0 {
			shares[k] = max(shares[k]/total, minShare)
		} else {
			shares[k] = 1 / float64(len(shares))
		}
	}
	return shares
}

// choose sets the caps and shares of extents, with steps large enough to limit the number of kernels.
func choose(extents []program.Extent, open map[string]Bounds) (err error) {
	for step := int64(closeStep); step <= maxStep; step *= 2 {
		for k := range extents {
			e, b := &extents[k], open[extents[k].Name]
			if e.Caps, err = b.caps(step); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			e.Shares = b.shares(e.Caps)
		}
		if combinations(extents) <= maxVariants {
			return nil
		}
	}
	e := extents[0]
	return fmt.Errorf("there would be %d kernels for each task, more than %d: give the extents fewer caps, as in --shape %s=%d..%d:%d",
		combinations(extents), maxVariants, e.Name, e.Min, e.Max, e.Min)
}

func combinations(extents []program.Extent) int {
	n := 1
	for _, e := range extents {
		n *= len(e.Caps) + 1
	}
	return n
}
