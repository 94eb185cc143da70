package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestStreamKRefusals checks the reasons in errors.
func TestStreamKRefusals(t *testing.T) {
	const cut = "persist 0 4\nstreamk 1 1\n"
	for trace, want := range map[string]string{
		kerneltest.Tiles + "persist 0 3\nstreamk 1 1\n":                                    "6 tiles, whole rounds of 3 blocks",
		kerneltest.Tiles + "persist 0 6\nstreamk 1 1\n":                                    "whole rounds",
		kerneltest.Tiles + "persist 0 50\nstreamk 1 1\n":                                   "12 steps for 50 blocks, fewer than one each",
		kerneltest.TilesOf(6) + cut:                                                        "have one step",
		kerneltest.TilesOf(4) + cut:                                                        "are not whole tiles of an axis",
		strings.Replace(kerneltest.Tiles, "bind 1 9 1", "bind 1 9 1\nunroll 1 3", 1) + cut: "is not a serial loop",
	} {
		w, err := expr.Parse("tilth-workload 1\n" + kerneltest.TileProduct)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if _, err := lower.Schedule(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTilesCanBeCounted checks the 32-bit limits on tiles and on steps of divided sums.
func TestTilesCanBeCounted(t *testing.T) {
	const product = `input t0 f32[%[1]d,%[2]d]
input t1 f32[%[2]d,%[3]d]
sum t2 f32[%[1]d,%[3]d] over %[2]d = (mul [t0 i0 r0] [t1 r0 i1])
output t2
`
	const tiles = "cache-write 0\nfuse 0 0 1\nbind 0 2 0\ncompute-at 1 0 2\npersist 0 65535\n"
	for _, c := range []struct {
		rows, terms, columns int64
		trace, want          string
	}{
		{1 << 17, 64, 1 << 15, tiles, "4294967296 tiles, more than blocks that walk can count"},
		{1 << 11, 1 << 17, 1 << 11, tiles + "streamk 1 64\n", "steps, more than blocks can count"},
		{1 << 10, 1 << 12, 1 << 10, tiles + "streamk 1 2\n", "1048576 tiles of 4096 steps, more than blocks can count"},
		{1 << 11, 1 << 8, 1 << 11, tiles + "streamk 1 9\n", ""},
	} {
		large, trace, want := fmt.Sprintf(product, c.rows, c.terms, c.columns), c.trace, c.want
		w, err := expr.Parse("tilth-workload 1\n" + large)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
		if err != nil {
			t.Fatalf("%q: %v", trace, err)
		}
		_, err = lower.Schedule(s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}
