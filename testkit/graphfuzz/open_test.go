package graphfuzz

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
)

// TestRandomGraphsWithOpenExtents: a program with an open extent computes, with each number, what the program for that
// number does. Models that have the number in them, as in a shape, cannot be open, and are refused.
func TestRandomGraphsWithOpenExtents(t *testing.T) {
	checked := 0
	for k := range *graphs {
		c := Generate(*seed + uint64(k))
		most, ok := c.OpenUp()
		if !ok {
			continue
		}
		p, err := frontend.Import(c.Model, frontend.Options{Open: map[string]frontend.Bounds{OpenExtent: {Least: 1, Most: most}}, Verify: true})
		if err != nil {
			continue
		}
		checked++
		for n := int64(1); n <= most; n++ {
			inputs, options := c.At(n)
			fixed, err := frontend.Import(c.Model, options)
			if err != nil {
				if !strings.Contains(err.Error(), "node") {
					report(t, c, err)
				}
				continue
			}
			want, err := fixed.Evaluate(inputs)
			if err != nil {
				report(t, c, err)
				continue
			}
			got, err := p.Evaluate(inputs)
			if err == nil {
				err = Compare(got, want, ownTolerance)
			}
			if err != nil {
				report(t, c, fmt.Errorf("with %s = %d: %w", OpenExtent, n, err))
			}
		}
	}
	t.Logf("%d of %d graphs were open", checked, *graphs)
}
