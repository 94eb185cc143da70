package toolchain

import (
	"context"
	_ "embed" // for the conversions
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/compiler/target"
)

// halfSource provides float16 conversions for RISC-V processors without instructions for them: the support library
// of gcc 12, which Debian 12's cross compilers use, lacks them.
//
//go:embed src/half.c
var halfSource string

var halfFunctions = []string{"__extendhfsf2", "__truncsfhf2", "__truncdfhf2"}

// withHalves adds the float16 conversions to objects that call them, if the compiler's library may lack them.
func (tc *Toolchain) withHalves(ctx context.Context, b Build, dir string, objects []string) ([]string, error) {
	if b.Target.Arch() != target.RISCV || !slices.ContainsFunc(objects, func(name string) bool { return convertsHalves(filepath.Join(dir, name)) }) {
		return objects, nil
	}
	const name = "tilth_half.c"
	if err := writeFiles(dir, []File{{name, halfSource}}); err != nil {
		return nil, err
	}
	object := "tilth_half.o"
	if err := tc.compile(ctx, Build{Target: b.Target, Form: b.Form, Limits: b.Limits}, dir, name, object); err != nil {
		return nil, err
	}
	return append(slices.Clone(objects), object), nil
}

func convertsHalves(path string) bool {
	undefined, err := undefinedSymbols(path)
	return err == nil && slices.ContainsFunc(undefined, func(symbol string) bool { return slices.Contains(halfFunctions, symbol) })
}
