//go:build static

package aot

import "errors"

// Loads reports whether this program can load packages.
const Loads = false

var errStatic = errors.New("this program was built to need no dynamic linker, and so cannot load packages: use one built without the tag static")

func dlopen(string) (uintptr, error) { return 0, errStatic }

func dlsym(uintptr, string) (uintptr, error) { return 0, errStatic }

func bindFunc(any, uintptr) {}

func dlclose(uintptr) error { return errStatic }
