package codegen

import "strings"

// declarations are the types and helper functions of a translation unit, each once, behind those that it uses.
type declarations struct {
	names []string
	texts map[string]string
}

func (d *declarations) has(name string) bool {
	_, ok := d.texts[name]
	return ok
}

// declare adds a declaration under its name, unless there is one.
func (d *declarations) declare(name, text string) {
	if d.has(name) {
		return
	}
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	d.names = append(d.names, name)
	d.texts[name] = text
}

// include adds the declarations of another unit.
func (d *declarations) include(other *declarations) {
	for _, name := range other.names {
		d.declare(name, other.texts[name])
	}
}

// text is all of them, in their order.
func (d *declarations) text() string {
	var b strings.Builder
	for _, name := range d.names {
		b.WriteString(d.texts[name])
	}
	return b.String()
}
