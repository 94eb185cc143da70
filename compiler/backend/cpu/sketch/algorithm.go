package sketch

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// otherAlgorithm is schedules of the reduction acc that compute it otherwise than the direct sum x; nil when there are
// none. The transforms of Winograd's algorithm are computed for one output alone.
func otherAlgorithm(s *schedule.Schedule, acc *schedule.Stage, u *unit, t *target.Target, x *tile) space.Family {
	if len(u.also) == 0 {
		if f := newWinograd(s, acc, u, t); f != nil {
			return f
		}
	}
	return newStrassen(s, acc, u, x)
}
