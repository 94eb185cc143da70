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

// question is a program that asks the driver something. It is a process of its own, because drivers start threads and
// keep memory.
type question struct {
	tc   *toolchain.Toolchain
	host *target.Target
	// dir is a folder to build the program in, parts the names of its sources beside what finds the driver.
	dir   string
	parts []string
	// launcher stands before the command.
	launcher []string
	// visible is which cards the driver shows to the program; empty = all.
	visible string
}

// build makes the program, and returns its path.
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

// run runs the program with the arguments behind the driver's path, and returns what it says.
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

// ask builds the program and runs it.
func ask(ctx context.Context, q question, args ...string) (string, error) {
	program, err := q.build(ctx)
	if err != nil {
		return "", err
	}
	return q.run(ctx, program, args...)
}

// measure finds a card's rates.
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

// farBytes is far more than a card's cache holds.
func farBytes(g *target.GPU) int64 { return 4 * g.L2Bytes }
