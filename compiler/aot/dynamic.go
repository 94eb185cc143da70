//go:build !static

package aot

import "github.com/ebitengine/purego"

// Shared objects are loaded by the system's dynamic linker, without cgo. A program that is built so needs the linker;
// one that is built with the tag static has none, and can do everything but load packages.

// Loads says whether this program can load packages.
const Loads = true

func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func dlsym(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

// bindFunc makes a pointer to a function variable call a symbol.
func bindFunc(function any, symbol uintptr) { purego.RegisterFunc(function, symbol) }

func dlclose(handle uintptr) error { return purego.Dlclose(handle) }
