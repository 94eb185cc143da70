package schedule

import "fmt"

// Swizzle gives a stage's buffer in shared memory the matrix layout of warpgroup instructions: rows of the last
// dimension form panels of up to 128 bytes, in which 16-byte pieces are permuted, so that threads reading a column
// use different banks. Swizzle has no effect on buffers whose rows are not 32, 64 or a multiple of 128 bytes long,
// or whose number of rows is not a multiple of eight.
func (s *Schedule) Swizzle(stageID int) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("swizzle: %w", err)
	case g.Scope != Shared:
		return fmt.Errorf("swizzle: stage %d does not lie in shared memory", stageID)
	case g.Swizzled:
		return fmt.Errorf("swizzle: stage %d is already swizzled", stageID)
	case g.StorageAlign != 0:
		return fmt.Errorf("swizzle: stage %d has gaps behind its rows", stageID)
	}
	g.Swizzled = true
	s.record("swizzle", stageID)
	return nil
}
