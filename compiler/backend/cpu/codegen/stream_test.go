package codegen

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestOnlyAlignedVectorsAreStreamed checks that rows of 16 elements are aligned to vectors, the last elements of rows
// of 20 are not, and rows of 17 have any alignment.
func TestOnlyAlignedVectorsAreStreamed(t *testing.T) {
	for columns, want := range map[string]struct{ streamed, stored int }{"16": {1, 0}, "20": {0, 2}, "17": {0, 1}} {
		w, err := expr.Parse(strings.ReplaceAll("tilth-workload 1\ninput t0 f32[4,C]\nmap t1 f32[4,C] = (add [t0 i0 i1] 0x1p+00:f32)\noutput t1\n", "C", columns))
		if err != nil {
			t.Fatal(err)
		}
		s := schedule.New(w)
		_, lane, err := s.Split(0, 1, 8, schedule.Peel)
		if err == nil {
			err = s.Vectorize(0, lane)
		}
		if err == nil {
			err = s.Stream(0)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := Module(w, []backend.Kernel{{ID: "k", Schedule: s}}, modes[1].description(t))
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(text, "static void k0_run")
		streamed, stored := strings.Count(code, "tilth_stream_f32x8(&"), strings.Count(code, "*(f32x")
		if streamed != want.streamed || stored != want.stored {
			t.Errorf("%s columns: %d vectors are streamed, %d stored, want %+v\n%s", columns, streamed, stored, want, code)
		}
		if ends := strings.Count(code, "tilth_end_streams();"); ends != min(1, streamed) {
			t.Errorf("%s columns: streams end %d times", columns, ends)
		}
	}
}
