package schedule

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// UseOwn computes the workload by a user kernel, with constants in the layout that the kernel declares. It replaces
// all primitives.
func (s *Schedule) UseOwn(c *userkernel.Candidate) error {
	if len(s.steps) > 0 || s.Own != nil {
		return fmt.Errorf("own kernel %s: the workload was already scheduled", c.Kernel.Name)
	}
	layouts, err := c.Layouts()
	if err != nil {
		return err
	}
	for _, constant := range slices.Sorted(maps.Keys(layouts)) {
		layout := layouts[constant]
		dims := make([]PackDim, len(layout))
		for k, d := range layout {
			dims[k] = PackDim{Dim: d.Dim, Factor: d.Factor, Inner: d.Inner}
		}
		if err := s.Pack(constant, dims); err != nil {
			return fmt.Errorf("own kernel %s: %w", c.Kernel.Name, err)
		}
	}
	level, err := ParseNumerics(c.Kernel.Numerics)
	if err != nil {
		return fmt.Errorf("own kernel %s: %w", c.Kernel.Name, err)
	}
	s.Own = c
	s.algorithms = append(s.algorithms, algorithm{name: c.Kernel.Label(), level: level, growth: 1, multiplications: 1})
	return nil
}

// replayOwn applies the lines of a trace that contains a user kernel.
func replayOwn(w *expr.Workload, lines []string) (*Schedule, error) {
	c, err := userkernel.Replay(w, lines)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	s := New(w)
	if err := s.UseOwn(c); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return s, nil
}
