//go:build !static

package aot

import "github.com/ebitengine/purego"

// Shared objects are loaded by the system's dynamic linker, without cgo, so the program needs the linker. A program
// built with the tag static needs none, and lacks only the ability to load packages.

// Loads reports whether this program can load packages.
const Loads = true

func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func dlsym(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

// bindFunc binds a pointer to a function variable to a symbol.
func bindFunc(function any, symbol uintptr) { purego.RegisterFunc(function, symbol) }

func dlclose(handle uintptr) error { return purego.Dlclose(handle) }
