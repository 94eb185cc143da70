package cost

import "testing"

// TestBankConflictsOfMatrixRowsAreCounted checks that eight rows of 16 bytes take one turn if all banks differ.
func TestBankConflictsOfMatrixRowsAreCounted(t *testing.T) {
	for bytes, turns := range map[int64]float64{16: 1, 48: 1, 144: 1, 720: 1, 32: 2, 96: 2, 160: 2, 64: 4, 128: 8} {
		// The four threads of a line would read 32 terms each: four registers per thread hold what the warp loads.
		m := matrices{bytes: bytes, lineThreads: 4, packed: 2}
		if got := m.traffic(32, 1); got != (Traffic{Requests: 1, Bytes: 512, Units: 4 * turns}) {
			t.Errorf("rows %d bytes apart: %+v, want %v turns for each of four matrices", bytes, got, turns)
		}
	}
}
