package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// question is a program that queries the driver. It is a separate process, because drivers start threads and retain
// memory.
type question struct {
	tc   *toolchain.Toolchain
	host *target.Target
	// dir is the folder to build the program in; parts are the names of its sources in addition to the driver loader.
	dir   string
	parts []string
	// launcher is a prefix of the command.
	launcher []string
	// visible selects the devices that the driver shows to the program; empty for all.
	visible string
}

// build builds the program and returns its path.
func (q question) build(ctx context.Context) (string, error) {
	program := filepath.Join(q.dir, "ask")
	unit := "#include \"driver.c\"\n"
	for _, part := range q.parts {
		unit += "#include \"" + part + "\"\n"
	}
	return program, q.tc.Build(ctx, toolchain.Build{
		Target: q.host, Form: toolchain.Executable, Headers: append(DriverSources(), sources("describe/src")...),
		Sources: []toolchain.File{{Name: "unit.c", Text: unit}},
	}, program)
}

// run runs the program with the driver's path and the arguments, and returns its output.
func (q question) run(ctx context.Context, program string, args ...string) (string, error) {
	command := slices.Concat(q.launcher, []string{program, driver()}, args)
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = &complaint
	if q.visible != "" {
		cmd.Env = append(os.Environ(), VisibleVariable+"="+q.visible)
	}
	out, err := cmd.Output()
	if said := strings.TrimSpace(complaint.String()); err != nil && said != "" {
		err = errors.New(said)
	}
	return string(out), err
}

// ask builds and runs the program.
func ask(ctx context.Context, q question, args ...string) (string, error) {
	program, err := q.build(ctx)
	if err != nil {
		return "", err
	}
	return q.run(ctx, program, args...)
}

// measure returns the rates of a GPU.
func measure(ctx context.Context, q question, t *target.Target) (roofline.Rates, error) {
	r := roofline.Rates{Stores: []roofline.Store{{Name: "L2", Bytes: t.GPU.L2Bytes}, {Name: "memory", Bytes: roofline.MemoryBytes}}}
	text, err := ask(ctx, q, strconv.FormatInt(t.GPU.L2Bytes/8, 10), strconv.FormatInt(farBytes(t.GPU), 10))
	if err != nil {
		return r, fmt.Errorf("measuring the GPU: %w", err)
	}
	if _, err := fmt.Sscan(text, &r.FlopPerSecond, &r.Stores[0].BytesPerSecond, &r.Stores[1].BytesPerSecond); err != nil {
		return r, fmt.Errorf("measuring the GPU: %q: %w", text, err)
	}
	return r, r.Check()
}

// farBytes returns a size far beyond a GPU's cache.
func farBytes(g *target.GPU) int64 { return 4 * g.L2Bytes }
