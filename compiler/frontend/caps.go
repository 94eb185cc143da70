package frontend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/program"
)

const (
	// minRatio is the ratio between consecutive kernel sizes if the distribution of extents is unknown; it grows if
	// there would be too many kernels, until there is one at noRatio. Loops end at the extents of an execution, so
	// that kernels for far larger ones lose little: bert-small, with kernels for 1, 8, 64 and 512 tokens, takes at
	// most 1.1 times as long as with kernels for just the given number, and ResNet-18, with kernels for 1 and 32
	// images, no longer than with kernels for each power of 2.
	minRatio, noRatio = 8, 1 << 25
	// minShare is the weight of kernels without known executions, since some may still occur.
	minShare = 1e-3
	// maxVariants limits the kernels of a task, one for each combination of caps. maxKernels stands for all larger
	// numbers of combinations.
	maxVariants, maxKernels = 32, 1 << 16
)

// quantiles of the extents of executions become caps.
var quantiles = []float64{0.1, 0.25, 0.5, 0.75, 0.9}

func (b Bounds) step() int64 { return max(b.Step, 1) }

// check checks the caps and frequencies.
func (b Bounds) check() error {
	for _, n := range b.Caps {
		if n < max(b.Min, b.step()) || n > b.Max {
			return fmt.Errorf("there cannot be kernels for up to %d, which is not within %d..%d", n, max(b.Min, b.step()), b.Max)
		}
		if n%b.step() != 0 {
			return fmt.Errorf("there cannot be kernels for up to %d, which is no multiple of %d", n, b.step())
		}
	}
	for n := range b.Frequencies {
		if n < b.Min || n > b.Max || n%b.step() != 0 {
			return fmt.Errorf("an extent of %d is not within %d..%d, in steps of %d", n, b.Min, b.Max, b.step())
		}
	}
	return nil
}

// units returns the bounds divided by the step.
func (b Bounds) units() Bounds {
	u := Bounds{Min: b.Min / b.step(), Max: b.Max / b.step(), Caps: slices.Clone(b.Caps), Frequencies: map[int64]float64{}}
	for k := range u.Caps {
		u.Caps[k] /= b.step()
	}
	for n, f := range b.Frequencies {
		u.Frequencies[n/b.step()] = f
	}
	return u
}

// caps returns the extents, ascending and below the maximum, that get kernels of their own. If the distribution is
// unknown, each is ratio times the one before, and noRatio means no caps. b must be in units.
func (b Bounds) caps(ratio int64) []int64 {
	var caps []int64
	switch {
	case b.Caps != nil:
		caps = slices.Clone(b.Caps)
	case len(b.Frequencies) > 0:
		for _, q := range quantiles {
			caps = append(caps, b.quantile(q))
		}
	case b.Min == 0 || ratio == noRatio: // extents that may be empty grow from run to run, and kernels accept any
	default:
		for n := b.Max / ratio; n >= b.Min*ratio; n /= ratio {
			caps = append(caps, n)
		}
		caps = append(caps, b.Min)
	}
	slices.Sort(caps)
	return slices.DeleteFunc(slices.Compact(caps), func(n int64) bool { return n < 1 || n == b.Max })
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

// choose sets the caps and shares of extents, with ratios large enough to limit the number of kernels.
func choose(extents []program.Extent, open map[string]Bounds) error {
	for ratio := int64(minRatio); ratio <= noRatio; ratio *= 2 {
		for k := range extents {
			b := open[extents[k].Name].units()
			extents[k].Caps = b.caps(ratio)
			extents[k].Shares = b.shares(extents[k].Caps)
		}
		if combinations(extents) <= maxVariants {
			return nil
		}
	}
	most := slices.MaxFunc(extents, func(a, b program.Extent) int { return len(a.Caps) - len(b.Caps) })
	return fmt.Errorf("there would be %d kernels for each task, more than %d: give the extents fewer caps, as in --shape %s",
		combinations(extents), maxVariants, open[most.Name].oneCap(most.Name))
}

// oneCap returns the setting for an extent with one cap.
func (b Bounds) oneCap(name string) string {
	text := fmt.Sprintf("%s=%d..%d", name, b.Min, b.Max)
	if b.step() > 1 {
		text += fmt.Sprintf("/%d", b.step())
	}
	return fmt.Sprintf("%s:%d", text, max(b.Min, b.step()))
}

func combinations(extents []program.Extent) int {
	n := 1
	for _, e := range extents {
		n = min(n*(len(e.Caps)+1), maxKernels)
	}
	return n
}
