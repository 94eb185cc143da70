package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tilth-dev/tilth/compiler/aot"
)

// extentsFlag sets the open extents of packages.
type extentsFlag struct{ chosen map[string]int64 }

func (f *extentsFlag) add(c *cobra.Command) {
	c.Flags().StringToInt64Var(&f.chosen, "shape", nil, "open extents of the package for random inputs, such as `sequence=37` (default the maximum)")
}

// of returns the extents for packages. It rejects extents that no package leaves open or that are out of
// bounds.
func (f *extentsFlag) of(manifests ...*aot.Manifest) (map[string]int64, error) {
	for _, name := range slices.Sorted(maps.Keys(f.chosen)) {
		n, known := f.chosen[name], false
		for _, m := range manifests {
			for _, e := range m.Extents {
				if e.Name != name {
					continue
				}
				known = true
				if n < e.Min || n > e.Max {
					return nil, usagef("--shape %s=%d: the package was compiled for %d..%d", name, n, e.Min, e.Max)
				}
			}
		}
		if !known {
			return nil, usagef("--shape %s=%d: no package leaves that open; 'tilth compile --shape %s=1..%d' makes one that does", name, n, name, max(n, 2))
		}
	}
	return f.chosen, nil
}
