package schedule

import "fmt"

// Scope is the memory of a GPU that a stage's buffer lies in.
type Scope uint8

// The scopes. By its place, a stage that is computed by single threads lies in their registers, one that is computed
// by blocks in shared memory, and one that is computed on its own in global memory.
const (
	ByPlace Scope = iota
	Shared
	Registers
)

// SetScope says where the buffer of a stage lies that is computed inside another. Registers of a stage whose threads
// are bound are spread over them: each thread keeps the elements that it computes, and nobody else may read them,
// which is found when the schedule is lowered.
func (s *Schedule) SetScope(stageID int, scope Scope) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("scope: %w", err)
	case scope != Shared && scope != Registers:
		return fmt.Errorf("scope: %d is not a scope", scope)
	case g.Consumer == nil:
		return fmt.Errorf("scope: stage %d is computed on its own, in global memory", stageID)
	case g.Scope != ByPlace:
		return fmt.Errorf("scope: stage %d already has one", stageID)
	}
	g.Scope = scope
	s.record("scope", stageID, int(scope))
	return nil
}
