package schedule

import "fmt"

// Scope is the GPU memory of a stage's buffer.
type Scope uint8

// The scopes. By default, a stage computed by single threads lies in registers, one computed by blocks in shared
// memory, and one computed on its own in global memory.
const (
	ByPlace Scope = iota
	Shared
	Registers
)

// SetScope sets the memory of a stage that is computed inside another one. Registers of a stage with bound threads
// are distributed over them: each thread keeps the elements that it computes, and no other thread may read them.
// Lowering checks this.
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
