package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestRowsOfTermsTakeThePlaceOfRowsThatBeginAnywhere, for all readers of a constant, and nowhere else.
func TestRowsOfTermsTakeThePlaceOfRowsThatBeginAnywhere(t *testing.T) {
	for _, c := range []struct {
		terms, columns int64
		turned         bool
	}{{8, 5, true}, {8, 12, false}, {6, 5, false}} {
		m := modeltest.New().Input("x", 2, 3, c.terms).Input("z", 7, c.terms).Constant("w", c.terms, c.columns).
			Node("a = MatMul x w").Node("b = MatMul z w").Output("a", "b")
		p, err := frontend.Import(m, frontend.Options{Verify: true, Storage: array.Storage{RowBytes: 16}})
		if err != nil {
			t.Fatal(err)
		}
		modeltest.CheckMeaning(t, m, p)
		for _, task := range p.Tasks {
			if turned := strings.Contains(task.Workload.Text(), fmt.Sprintf("f32[%d,%d]", c.columns, c.terms)); turned != c.turned {
				t.Errorf("%d terms of %d columns are read so:\n%s", c.terms, c.columns, task.Workload.Text())
			}
		}
	}
}
