package bench

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func TestWorstErrorIsRelativeToTheLargestValue(t *testing.T) {
	zeros := array.New(array.Float32, 2)
	want := array.FromFloat32([]float32{1, -4}, 2)
	nan := float32(math.NaN())
	cases := map[string]struct {
		got, want *array.Array
		worst     float64
	}{
		"equal":        {want, want, 0},
		"off":          {array.FromFloat32([]float32{1.5, -4}, 2), want, 0.125},
		"all zeros":    {zeros, zeros, 0},
		"not zero":     {want, zeros, math.MaxFloat64},
		"other length": {array.New(array.Float32, 3), want, math.MaxFloat64},
		"no number":    {array.FromFloat32([]float32{nan, -4}, 2), want, math.MaxFloat64},
		"missing":      {nil, want, math.MaxFloat64},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]*array.Array{"y": c.got}
			if w := WorstError(got, map[string]*array.Array{"y": c.want}); w != c.worst {
				t.Errorf("got %g, want %g", w, c.worst)
			}
		})
	}
}
