package cprint

import "strings"

// Declarations holds the types and helper functions of a translation unit, each once, after its dependencies.
type Declarations struct {
	names []string
	texts map[string]string
}

// Has reports whether a name is declared.
func (d *Declarations) Has(name string) bool {
	_, ok := d.texts[name]
	return ok
}

// Declare adds a declaration under its name, unless it exists.
func (d *Declarations) Declare(name, text string) {
	if d.Has(name) {
		return
	}
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	d.names = append(d.names, name)
	d.texts[name] = text
}

// Include adds the declarations of another unit.
func (d *Declarations) Include(other *Declarations) {
	for _, name := range other.names {
		d.Declare(name, other.texts[name])
	}
}

// Text returns all declarations in order.
func (d *Declarations) Text() string {
	var b strings.Builder
	for _, name := range d.names {
		b.WriteString(d.texts[name])
	}
	return b.String()
}
