package lower_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

const weighted = `input t0 f32[4,20]
input t1 f32[20,6]
max t2 f32[4] over 20 = [t0 i0 r0]
map t3 f32[4,20] = (exp (sub [t0 i0 i1] [t2 i0]))
sum t4 f32[4,6] over 20 = (mul [t3 i0 r0] [t1 r0 i1])
sum t5 f32[4] over 20 = [t3 i0 r0]
map t6 f32[4,6] = (div [t4 i0 i1] [t5 i0])
output t6
`

// online computes pieces of eight in two tiles of three rows, of which the second goes beyond the end.
const online = `online 2 8
split 4 0 3 2
compute-at 2 4 2
reorder 2 2 0 1 3
compute-at 3 4 2
compute-at 9 2 2
compute-at 10 2 2
compute-at 8 2 2
compute-at 7 2 2
compute-at 6 2 2
compute-at 5 2 2
`

// TestOnlinePiecesMustStayInOrder checks the error for a loop order that reorders pieces.
func TestOnlinePiecesMustStayInOrder(t *testing.T) {
	for name, c := range map[string]struct{ trace, want string }{
		"another axis outside":   {strings.Replace(online, "reorder 2 2 0 1 3", "reorder 2 3 2 0 1", 1), "not the outermost of them"},
		"unrolled":               {strings.Replace(online, "reorder 2 2 0 1 3\n", "reorder 2 2 0 1 3\nunroll 2 2\n", 1), "not a plain loop"},
		"rows outside":           {strings.Replace(online, "reorder 2 2 0 1 3", "reorder 2 0 2 1 3", 1), "not the outermost"},
		"running on its own":     {"online 2 8\n", "is carried across pieces"},
		"read before it is kept": {online + "cache-read 7 1 0 1\n", "after the loop that needs it"},
	} {
		w, err := expr.Parse("tilth-workload 1\n" + weighted)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+c.trace))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := lower.Schedule(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
