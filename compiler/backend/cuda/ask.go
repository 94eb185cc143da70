package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	// dir is a folder to build the program in, main the name of its source.
	dir, main string
	// launcher stands before the command.
	launcher []string
	// visible is which cards the driver shows to the program; empty = all.
	visible string
}

// ask runs the program with the arguments, and returns what it says.
func ask(ctx context.Context, q question, args []string) (string, error) {
	program := filepath.Join(q.dir, "ask")
	unit := "#include \"driver.c\"\n#include \"rates.c\"\n#include \"" + q.main + "\"\n"
	if err := q.tc.Build(ctx, toolchain.Build{
		Target: q.host, Form: toolchain.Executable, Headers: append(DriverSources(), sources("describe/src")...),
		Sources: []toolchain.File{{Name: "unit.c", Text: unit}},
	}, program); err != nil {
		return "", err
	}
	command := append(append(append([]string{}, q.launcher...), program, driver()), args...)
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

// measure finds a card's rates.
func measure(ctx context.Context, q question, t *target.Target) (roofline.Rates, error) {
	r := roofline.Rates{Stores: []roofline.Store{{Name: "L2", Bytes: t.GPU.L2Bytes}, {Name: "memory", Bytes: roofline.MemoryBytes}}}
	text, err := ask(ctx, q, []string{strconv.FormatInt(t.GPU.L2Bytes/8, 10), strconv.FormatInt(farBytes, 10)})
	if err != nil {
		return r, fmt.Errorf("measuring the GPU: %w", err)
	}
	if _, err := fmt.Sscan(text, &r.FlopPerSecond, &r.Stores[0].BytesPerSecond, &r.Stores[1].BytesPerSecond); err != nil {
		return r, fmt.Errorf("measuring the GPU: %q: %w", text, err)
	}
	return r, r.Check()
}

// farBytes is far more than a cache holds.
const farBytes = 256 << 20
