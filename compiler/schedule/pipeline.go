package schedule

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxPipeline limits the number of steps that are fetched ahead.
const maxPipeline = 8

// Pipeline fills a shared buffer ahead of the loop that computes it, by asynchronous copies for the given number of
// steps including the current one. The stage must be a copy, or zero where a condition fails. Copies of less than 4
// bytes, such as single halves, are not made ahead.
func (s *Schedule) Pipeline(stageID int, steps int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("pipeline: %w", err)
	case steps < 2 || steps > maxPipeline:
		return fmt.Errorf("pipeline: %d steps of stage %d are not between 2 and %d", steps, stageID, maxPipeline)
	case g.Scope != Shared:
		return fmt.Errorf("pipeline: stage %d is not in shared memory", stageID)
	case g.Steps > 0:
		return fmt.Errorf("pipeline: stage %d has one already", stageID)
	case !g.At.Reduce:
		return fmt.Errorf("pipeline: stage %d is not computed in a loop over a reduction", stageID)
	}
	if _, _, ok := g.Copy(); !ok {
		return fmt.Errorf("pipeline: stage %d is not a copy", stageID)
	}
	g.Steps = steps
	s.record("pipeline", stageID, int(steps))
	return nil
}

// Copy returns the source of a stage that copies, and its condition or nil; ok is false for other stages.
func (g *Stage) Copy() (from *expr.Load, valid expr.Expr, ok bool) { return CopyOf(g.Body) }

// CopyOf matches a value that is an element, or an element under conditions and zero elsewhere.
func CopyOf(e expr.Expr) (from *expr.Load, valid expr.Expr, ok bool) {
	for {
		n, isSelect := e.(*expr.Select)
		if !isSelect {
			break
		}
		if len(expr.Loads(n.Cond)) > 0 || !isZero(n.B) {
			return nil, nil, false
		}
		if e = n.A; valid == nil {
			valid = n.Cond
		} else {
			valid = expr.Bin(expr.And, valid, n.Cond)
		}
	}
	from, ok = e.(*expr.Load)
	return from, valid, ok && len(expr.Loads(from)) == 1
}

// isZero reports whether a value is a zero of any type: padding in 16-bit types is a converted zero.
func isZero(e expr.Expr) bool {
	switch n := e.(type) {
	case *expr.Cast:
		return isZero(n.A)
	case *expr.Float:
		return n.Value == 0 && !math.Signbit(n.Value)
	case *expr.Int:
		return n.Value == 0
	}
	return false
}
