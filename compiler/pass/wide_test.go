package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// wideCopied is a matrix whose rows of 24 a block of 8 threads brings to shared memory, by vectors.
const wideCopied = `input t0 f32[4,%]
map t1 f32[4,24] = (mul [t0 i0 i1] [t0 i0 i1])
output t1
`

// byVectors has each thread take so many neighbours.
const byVectors = `bind 0 0 0
cache-read 0 0 0 1
compute-at 1 0 0
scope 1 1
fuse 1 0 1
split 1 2 % 0
bind 1 3 1
vectorize 1 4
`

func wideProgram(t *testing.T, row, vector string) *ir.Func {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, strings.ReplaceAll(wideCopied, "%", row), strings.ReplaceAll(byVectors, "%", vector)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWideUnrollsUnsupportedCopies: rows that begin anywhere, vectors that are longer than copies, or of no power of
// two.
func TestWideUnrollsUnsupportedCopies(t *testing.T) {
	for _, c := range [][2]string{{"26", "4"}, {"24", "8"}, {"24", "3"}} {
		text := pass.Wide(wideProgram(t, c[0], c[1])).Text()
		if strings.Contains(text, "vector") || strings.Contains(text, "load ") || !strings.Contains(text, "unrolled") {
			t.Errorf("rows of %s by %s:\n%s", c[0], c[1], text)
		}
	}
}
