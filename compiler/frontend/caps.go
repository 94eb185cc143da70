package frontend

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
)

const (
	// minRatio is the ratio between consecutive caps that the compiler chooses. It grows while there would be too many
	// kernels; noRatio means no caps. Loops end at the extents of an execution, so kernels for much larger extents are
	// nearly as fast.
	minRatio, noRatio = 8, 1 << 25
	// maxVariants limits the kernels of a task, one for each combination of caps. maxKernels stands for all larger
	// numbers of combinations.
	maxVariants, maxKernels = 32, 1 << 16
)

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

// choose sets the caps of extents, and the points at which their kernels are timed. It chooses the caps, and given is
// false, unless the user gave caps or a distribution, for which the kernels are tuned.
func choose(extents []program.Extent, open map[string]Bounds) (given bool, err error) {
	for _, e := range extents {
		given = given || open[e.Name].Caps != nil || len(open[e.Name].Frequencies) > 0
	}
	for ratio := int64(minRatio); ratio <= noRatio; ratio *= 2 {
		for k := range extents {
			b := open[extents[k].Name].units()
			if !given {
				b.Caps = b.spaced(ratio)
			}
			b.setCaps(&extents[k], k)
		}
		if given || combinations(extents) <= maxVariants {
			break
		}
	}
	if combinations(extents) <= maxVariants {
		return given, nil
	}
	most := slices.MaxFunc(extents, func(a, b program.Extent) int { return len(a.Caps) - len(b.Caps) })
	return given, fmt.Errorf("there would be %d kernels for each task, more than %d: give the extents fewer caps, as in --shape %s",
		combinations(extents), maxVariants, open[most.Name].oneCap(most.Name))
}

// spaced returns the minimum, and extents each of which is ratio times the one before; none at noRatio, or if extents
// may be empty: these grow from run to run.
func (b Bounds) spaced(ratio int64) (caps []int64) {
	if b.Min == 0 || ratio == noRatio {
		return nil
	}
	for n := b.Max / ratio; n >= b.Min*ratio; n /= ratio {
		caps = append(caps, n)
	}
	return append(caps, b.Min)
}

// setCaps sets the caps of the k-th extent with points for each of them and the maximum: combined, not all are
// small, or all large, together.
func (b Bounds) setCaps(e *program.Extent, k int) {
	slices.Sort(b.Caps)
	e.Caps, e.Points = slices.DeleteFunc(slices.Compact(b.Caps), func(n int64) bool { return n == b.Max }), nil
	least, turn := b.Min, k%(expr.Points-1)
	for _, most := range append(slices.Clone(e.Caps), b.Max) {
		points := b.points(least, most)
		e.Points, least = append(e.Points, slices.Concat(points[turn:expr.Points-1], points[:turn], points[expr.Points-1:])), most+1
	}
}

// points returns the extents from least to most with which kernels are timed, ascending: quantiles of the executions
// if their distribution is known, and otherwise numbers at equal ratios. The last one is most, at which results are
// verified.
func (b Bounds) points(least, most int64) []int64 {
	points := make([]int64, expr.Points)
	low := float64(max(least, 1))
	for k := range points {
		points[k] = int64(math.Round(low * math.Pow(float64(most)/low, float64(k+1)/expr.Points)))
		if n, known := b.quantile(least, most, (float64(k)+0.5)/(expr.Points-1)); known {
			points[k] = max(n, 1)
		}
	}
	points[expr.Points-1] = most
	return points
}

// quantile returns the smallest extent that the given share of the executions from least to most does not exceed;
// known reports whether the distribution has any.
func (b Bounds) quantile(least, most int64, share float64) (n int64, known bool) {
	var within []int64
	left := 0.0
	for _, n := range slices.Sorted(maps.Keys(b.Frequencies)) {
		if n >= least && n <= most {
			within, left = append(within, n), left+b.Frequencies[n]*share
		}
	}
	for _, n := range within {
		if left -= b.Frequencies[n]; left <= 0 {
			return n, true
		}
	}
	return most, len(within) > 0
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
