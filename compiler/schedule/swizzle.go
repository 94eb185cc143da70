package schedule

import "fmt"

// Swizzle lays out the buffer of a stage in shared memory as the instructions of warpgroups read matrices: rows of the
// last dimension in panels of up to 128 bytes, in which pieces of 16 bytes change places, so that threads that use a
// column use different banks. A buffer whose rows are not 32, 64 or a multiple of 128 bytes long, or no multiple of
// eight, is laid out as if nothing was said.
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
