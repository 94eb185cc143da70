package cost

const (
	// sectorBytes is what global memory moves at a time.
	sectorBytes = 32
	// banks is how many words of shared memory a turn has, each from another bank.
	banks, wordBytes = 32, 4
	// turnThreads is how many threads have a turn together when each asks for so many words.
	turnBytes = banks * wordBytes
)

// sectors is how many sectors of global memory the active threads touch, each with so many bytes from an element on.
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

// turns is how many turns the banks of shared memory take for the active threads. Threads that ask for the same word
// share it; as many threads as a turn has words for take theirs together.
func (s *sample) turns(index *lanes, size, bytes int64) (n int) {
	together := int(min(width, turnBytes/max(bytes, wordBytes)))
	for from := 0; from < width; from += together {
		var words [width]int64
		var used [banks]int
		count, most := 0, 0
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
				most = max(most, used[bank])
			}
		}
		n += most
	}
	return n
}

// contains looks from the end, since neighbours mostly ask for the same.
func contains(list []int64, v int64) bool {
	for k := len(list) - 1; k >= 0; k-- {
		if list[k] == v {
			return true
		}
	}
	return false
}
