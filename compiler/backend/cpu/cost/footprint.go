// Footprint says how much of the memory hierarchy a part of a tensor occupies. The analytic cost of a schedule
// and the features of the learnt one are both made from it.

package cost

// pageBytes is the size of a page of memory.
const pageBytes = 4096

// Touched is how many cache lines and pages a box of a tensor touches, given how many elements of each dimension it
// reaches. Packed tensors lie in the order in which they are read, so that any box of them is contiguous.
func Touched(shape, box []int64, elementBytes, lineBytes int64, packed bool) (lines, pages float64) {
	run, runs, gap := ContiguousRun(shape, box, elementBytes, packed), int64(1), elementBytes
	whole := true // so far the dimensions are touched whole, so that they lie in memory as one
	for d := len(shape) - 1; d >= 0; d-- {
		e := box[d]
		if !whole {
			runs *= e
		}
		whole = whole && (e == shape[d] || packed)
		if !whole && runs == 1 {
			gap *= shape[d]
		} else if whole {
			gap *= shape[d]
		}
	}
	lines = float64(runs) * float64((run+lineBytes-1)/lineBytes)
	if gap%lineBytes != 0 { // runs begin anywhere in a line
		lines = float64(runs) * (float64(run)/float64(lineBytes) + 0.5)
	}
	pages = float64(runs) * (float64(run)/pageBytes + 1)
	if gap < pageBytes {
		pages = float64(runs*max(gap, run))/pageBytes + 1
	}
	return lines, pages
}

// ContiguousRun is how many bytes of a box of a tensor lie in memory one after the other.
func ContiguousRun(shape, box []int64, elementBytes int64, packed bool) int64 {
	run := elementBytes
	for d := len(shape) - 1; d >= 0; d-- {
		run *= box[d]
		if box[d] != shape[d] && !packed {
			break
		}
	}
	return run
}
