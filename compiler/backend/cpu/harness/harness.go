package harness

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/runtime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/*
var files embed.FS

// Build is the harness as something to compile for a target. All sources make one translation unit, because starting a
// compiler takes longer than compiling any of them.
func Build(t *target.Target) toolchain.Build {
	parts := append(runtime.PoolHeaders(), runtime.PoolSources()...)
	entries, err := files.ReadDir("src")
	if err != nil {
		panic(err) // embedded
	}
	for _, entry := range entries {
		text, err := files.ReadFile("src/" + entry.Name())
		if err != nil {
			panic(err) // embedded
		}
		parts = append(parts, toolchain.File{Name: entry.Name(), Text: string(text)})
	}
	unit := "#define _GNU_SOURCE\n"
	for _, part := range parts {
		if strings.HasSuffix(part.Name, ".c") {
			unit += "#include \"" + part.Name + "\"\n"
		}
	}
	return toolchain.Build{Target: t, Form: toolchain.Executable, Headers: parts, Sources: []toolchain.File{{Name: "unit.c", Text: unit}}}
}
