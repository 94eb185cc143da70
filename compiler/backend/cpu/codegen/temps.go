package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// temporary is a variable with a value that was loaded.
type temporary struct {
	name string
	// from are the buffers that it was loaded from.
	from []*expr.Tensor
}

// temp keeps a load's value in a variable, so that straight-line code loads once. Behind a condition it stays where it
// is.
func (p *printer) temp(ctype, code string, from ...*expr.Tensor) string {
	if p.guarded > 0 {
		return code
	}
	if t, ok := p.temps[code]; ok {
		return t.name
	}
	name := p.kernel.fresh("t")
	p.line("const %s %s = %s;", ctype, name, code)
	p.temps[code] = temporary{name, from}
	return name
}

// chosen keeps a value that is loaded under a condition, as at a border, in a variable: an unrolled tile uses it many
// times, and each time would be a branch.
func (p *printer) chosen(n *expr.Select, ctype, code string) string {
	var from []*expr.Tensor
	for _, l := range expr.Loads(n) {
		if p.registers[l.Tensor] != nil { // variables change without notice to temps
			return code
		}
		from = append(from, l.Tensor)
	}
	if len(from) == 0 {
		return code
	}
	return p.temp(ctype, code, from...)
}

// isNew reports whether temp would load the value here.
func (p *printer) isNew(code string) bool {
	_, known := p.temps[code]
	return p.guarded == 0 && !known
}

// forget drops all loaded values; the variables are out of scope, or all memory may have changed.
func (p *printer) forget() { p.temps = map[string]temporary{} }

// stored drops the values that were loaded from a buffer which changes. No two buffers share memory. Compilers cannot
// tell: of pointers that are no parameters they do not use restrict, and would load again behind each store.
func (p *printer) stored(t *expr.Tensor) {
	for code, temp := range p.temps {
		if slices.Contains(temp.from, t) {
			delete(p.temps, code)
		}
	}
}
