package backendtest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Space returns the candidate schedules of a workload on a target.
func Space(t testing.TB, w *expr.Workload, on *target.Target, numerics schedule.Numerics) *space.Space {
	t.Helper()
	s, err := registry.Space(w, on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
