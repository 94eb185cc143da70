package cost

// pageBytes is the size of a page of memory.
const pageBytes = 4096

// Touched returns how many cache lines and pages a box of a tensor touches, given its extent in each dimension.
// Packed tensors are stored in the order of reads, so every box of them is contiguous. The analytic cost of a
// schedule and the features of the learned cost model both use it.
func Touched(shape, box []int64, elementBytes, lineBytes int64, packed bool) (lines, pages float64) {
	run, runs, gap := ContiguousRun(shape, box, elementBytes, packed), int64(1), elementBytes
	whole := true // true while the inner dimensions are touched whole and thus contiguous
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
	if gap%lineBytes != 0 { // runs start anywhere in a line
		lines = float64(runs) * (float64(run)/float64(lineBytes) + 0.5)
	}
	pages = float64(runs) * (float64(run)/pageBytes + 1)
	if gap < pageBytes {
		pages = float64(runs*max(gap, run))/pageBytes + 1
	}
	return lines, pages
}

// ContiguousRun returns how many contiguous bytes of memory a box of a tensor has.
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
