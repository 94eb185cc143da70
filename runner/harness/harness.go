// Package harness holds the C sources of the program that verifies and times kernels on a device.
package harness

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/aot/runtime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/*
var files embed.FS

// Build is the harness as something to compile for a target.
func Build(t *target.Target) toolchain.Build {
	b := toolchain.Build{Target: t, Form: toolchain.Executable, Sources: runtime.PoolSources(), Headers: runtime.PoolHeaders()}
	entries, err := files.ReadDir("src")
	if err != nil {
		panic(err) // embedded
	}
	for _, entry := range entries {
		text, err := files.ReadFile("src/" + entry.Name())
		if err != nil {
			panic(err) // embedded
		}
		file := toolchain.File{Name: entry.Name(), Text: string(text)}
		if entry.Name()[len(entry.Name())-1] == 'h' {
			b.Headers = append(b.Headers, file)
		} else {
			b.Sources = append(b.Sources, file)
		}
	}
	return b
}
