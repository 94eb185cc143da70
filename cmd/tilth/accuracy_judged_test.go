package main

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// TestAccuracyErrorsNameARemedy checks that the remedy fits the reason.
func TestAccuracyErrorsNameARemedy(t *testing.T) {
	values := func(v ...float32) *array.Array { return array.FromFloat32(v, int64(len(v))) }
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		got, want *array.Array
		max       float64
		said      string
	}{
		"none":              {values(1, 2), values(1, 2), 0.1, ""},
		"within":            {values(1, 2.1), values(1, 2), 0.1, ""},
		"not limited":       {values(1, 3), values(1, 2), 0, ""},
		"too large":         {values(1, 3), values(1, 2), 0.1, "use more accurate --numerics, or allow more"},
		"not finite":        {values(1, nan), values(1, 2), 0, "use more accurate --numerics"},
		"zeros":             {values(0, 0), values(0, 0), 0.1, ""},
		"nothing to divide": {values(0, 1e-3), values(0, 0), 0, "choose other inputs"},
	} {
		k := &compileCommand{}
		k.accuracy.max, k.accuracy.limited = c.max, func() bool { return c.max > 0 }
		_, err := k.judgeError(map[string]*array.Array{"y": c.got}, map[string]*array.Array{"y": c.want})
		if (err == nil) != (c.said == "") || err != nil && !strings.HasSuffix(err.Error(), c.said) {
			t.Errorf("%s: %v, want %q", name, err, c.said)
		}
	}
}
