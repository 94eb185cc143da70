package cost

const (
	// sectorBytes is the granularity of global memory transfers.
	sectorBytes = 32
	// A turn of shared memory serves one word from each of its banks.
	banks, wordBytes = 32, 4
	// turnThreads is the number of threads served in one turn, by the words that each requests.
	turnBytes = banks * wordBytes
)

// sectors returns how many sectors of global memory the active threads touch, each with the given bytes from an
// element on.
func (s *sample) sectors(index *lanes, size, bytes int64) (n int) {
	var seen [width * 2]int64
	for k := range index {
		if s.active>>k&1 == 0 {
			continue
		}
		first := floorDiv(index[k]*size, sectorBytes)
		last := floorDiv(index[k]*size+bytes-1, sectorBytes)
		for at := first; at <= last && n < len(seen); at++ {
			if !contains(seen[:n], at) {
				seen[n] = at
				n++
			}
		}
	}
	return n
}

// turns returns how many turns of the shared memory banks serve the active threads. Threads that request the same
// word share it. Each turn serves as many threads as it has words for.
func (s *sample) turns(index *lanes, size, bytes int64) (n int) {
	together := int(min(width, turnBytes/max(bytes, wordBytes)))
	for from := 0; from < width; from += together {
		var words [width]int64
		var used [banks]int
		count, largest := 0, 0
		for k := from; k < from+together; k++ {
			if s.active>>k&1 == 0 {
				continue
			}
			first, last := floorDiv(index[k]*size, wordBytes), floorDiv(index[k]*size+bytes-1, wordBytes)
			for at := first; at <= last; at++ {
				if count == len(words) || contains(words[:count], at) {
					continue
				}
				words[count] = at
				count++
				bank := at - banks*floorDiv(at, banks)
				used[bank]++
				largest = max(largest, used[bank])
			}
		}
		n += largest
	}
	return n
}

// contains searches from the end, since neighbours usually request the same value.
func contains(list []int64, v int64) bool {
	for k := len(list) - 1; k >= 0; k-- {
		if list[k] == v {
			return true
		}
	}
	return false
}
