package fakedriver

import (
	"context"
	_ "embed" // for the source
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen/abi"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/fake.c
var source string

// Driver is a fake driver in a folder of its own.
type Driver struct {
	tc     *toolchain.Toolchain
	target *target.Target
	dir    string
}

// Make builds the library for a target's host, in a folder that is empty.
func Make(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string) (*Driver, error) {
	d := &Driver{tc, t, dir}
	err := tc.Build(ctx, toolchain.Build{
		Target: t, Form: toolchain.Library, Sources: []toolchain.File{{Name: "fake.c", Text: source}},
		Headers: append(cuda.DriverSources(), toolchain.File{Name: abi.HeaderName, Text: abi.Header}),
	}, d.Library())
	return d, err
}

// Library is the path of the library.
func (d *Driver) Library() string { return filepath.Join(d.dir, "libcuda.so.1") }

// Tell sets one of the numbers that src/fake.c knows, such as the launch from which on all fail.
func (d *Driver) Tell(what string, number int) error {
	return os.WriteFile(filepath.Join(d.dir, what), []byte(strconv.Itoa(number)), 0o600)
}

// Play has the driver play the code of a module, which was made of these candidates.
func (d *Driver) Play(ctx context.Context, code []byte, candidates []*cuda.Printed) error {
	var helpers ctext.Declarations
	text := ""
	for _, p := range candidates {
		helpers.Include(p.Helpers())
		for _, k := range p.Kernels {
			text += codegen.Player(k)
		}
	}
	h := fnv.New64a()
	h.Write(code)
	return d.tc.Build(ctx, toolchain.Build{
		Target: d.target, Form: toolchain.Library, Level: toolchain.KernelLevel,
		Sources: []toolchain.File{{Name: "player.c", Text: abi.Header + dialect.Simulated() + helpers.Text() + text}},
	}, filepath.Join(d.dir, fmt.Sprintf("%016x.so", h.Sum64())))
}
