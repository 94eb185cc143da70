package opencl

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

// question is a program that queries OpenCL. It is a separate process, because drivers start threads and retain
// memory.
type question struct {
	tc   *toolchain.Toolchain
	host *target.Target
	// dir is the folder to build the program in, main the name of its source.
	dir, main string
	// launcher is a prefix of the command.
	launcher []string
}

// ask runs the program for the chosen device with the arguments, and returns its output.
func ask(ctx context.Context, q question, args []string) (string, error) {
	program := filepath.Join(q.dir, "ask")
	unit := "#include \"opencl.c\"\n#include \"rates.c\"\n#include \"" + q.main + "\"\n"
	if err := q.tc.Build(ctx, toolchain.Build{
		Target: q.host, Form: toolchain.Executable, Headers: append(DriverSources(), sources("describe/src")...),
		Sources: []toolchain.File{{Name: "unit.c", Text: unit}},
	}, program); err != nil {
		return "", err
	}
	number, err := chosen()
	if err != nil {
		return "", err
	}
	command := append(append(append([]string{}, q.launcher...), program, library(), strconv.Itoa(number)), args...)
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "POCL_CACHE_DIR="+q.dir) // the cache leaves files there
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if said := strings.TrimSpace(complaint.String()); err != nil && said != "" {
		err = errors.New(said)
	}
	return string(out), err
}

// farBytes is a size far beyond a cache.
const farBytes = 256 << 20

// measure returns the rates of a device.
func measure(ctx context.Context, q question, t *target.Target) (roofline.Rates, error) {
	near := min(t.GPU.L2Bytes, farBytes) / 8
	r := roofline.Rates{Stores: []roofline.Store{{Name: "cache", Bytes: t.GPU.L2Bytes}, {Name: "memory", Bytes: roofline.MemoryBytes}}}
	text, err := ask(ctx, q, []string{strconv.FormatInt(max(near, minCopied), 10), strconv.FormatInt(farBytes, 10)})
	if err != nil {
		return r, fmt.Errorf("measuring the OpenCL device: %w", err)
	}
	if _, err := fmt.Sscan(text, &r.FlopPerSecond, &r.Stores[0].BytesPerSecond, &r.Stores[1].BytesPerSecond); err != nil {
		return r, fmt.Errorf("measuring the OpenCL device: %q: %w", text, err)
	}
	return r, r.Check()
}

// minCopied is the minimum size in bytes for a measurable copy.
const minCopied = 64 << 10
