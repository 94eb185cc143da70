package userkernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dim is a dimension of a packed constant's layout: a whole one if Factor is 0, or else the quotient by Factor, or
// the remainder if Inner is set.
type Dim struct {
	Dim    int
	Factor int64
	Inner  bool
}

// packDim is a Dim with an unevaluated factor; nil means whole.
type packDim struct {
	dim    int
	factor expression
	inner  bool
}

func (k *Kernel) parsePacks() error {
	if len(k.Packs) > maxDims {
		return fmt.Errorf("pack: more than %d constants", maxDims)
	}
	k.packed = nil
	for i, p := range k.Packs {
		if p.Constant < 0 || slices.ContainsFunc(k.Packs[:i], func(o Pack) bool { return o.Constant == p.Constant }) {
			return fmt.Errorf("pack: constant %d is negative or a duplicate", p.Constant)
		}
		if len(p.Dims) == 0 || len(p.Dims) > maxDims {
			return fmt.Errorf("pack: constant %d: want 1 to %d dimensions", p.Constant, maxDims)
		}
		var dims []packDim
		for _, text := range p.Dims {
			d, err := k.parseDim(text)
			if err != nil {
				return fmt.Errorf("pack: constant %d: dimension %q: %w", p.Constant, text, err)
			}
			dims = append(dims, d)
		}
		k.packed = append(k.packed, dims)
	}
	return nil
}

func (k *Kernel) parseDim(text string) (d packDim, err error) {
	number := text
	if at := strings.IndexAny(text, "/%"); at >= 0 {
		number, d.inner = text[:at], text[at] == '%'
		if d.factor, err = parseExpression(text[at+1:], k.known); err != nil {
			return d, err
		}
	}
	d.dim, err = strconv.Atoi(number)
	if err != nil || d.dim < 0 || d.dim >= maxDims {
		return d, fmt.Errorf("want a number, optionally followed by / or %% and a factor")
	}
	return d, nil
}

// Layouts returns the layouts of constants, by index. Factors must not depend on the number of threads, which a
// trace does not contain: it is 0 in them.
func (c *Candidate) Layouts() (map[int][]Dim, error) {
	layouts := map[int][]Dim{}
	names := c.Names(0)
	for i, p := range c.Kernel.Packs {
		for _, d := range c.Kernel.packed[i] {
			dim := Dim{Dim: d.dim, Inner: d.inner}
			if d.factor != nil {
				v, err := d.factor(names)
				if err == nil && (v < 1 || v > maxMagnitude) {
					err = fmt.Errorf("factor %d is not between 1 and %d", v, int64(maxMagnitude))
				}
				if err != nil {
					return nil, fmt.Errorf("own kernel %s: pack: constant %d: %w", c.Kernel.Name, p.Constant, err)
				}
				dim.Factor = v
			}
			layouts[p.Constant] = append(layouts[p.Constant], dim)
		}
	}
	return layouts, nil
}
