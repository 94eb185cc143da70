package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// minDeviceClang is the first version of clang that compiles plain C to kernels for current GPUs.
const minDeviceClang = 19

// device compiles the only source of a build for a device.
func (tc *Toolchain) device(ctx context.Context, b Build, dir string) error {
	source := b.Sources[0].Name
	step := fmt.Sprintf("compiling %s with %s", source, tc.Name)
	if major, _, _ := strings.Cut(strings.TrimPrefix(tc.Name, "clang-"), "."); !atLeast(major, minDeviceClang) {
		return &Error{Kind: Infra, Step: step,
			Message: fmt.Sprintf("kernels for GPUs need clang %d or later; install it, or name it with --compiler or %s", minDeviceClang, Variable)}
	}
	args := append(append([]string{}, b.Flags...), "-fno-crash-diagnostics", "-w", source, "-o", linked)
	if err := b.Limits.run(ctx, step, program{dir: dir, path: tc.path, args: args, box: tc.box, loaded: tc.servers}); err != nil {
		return err
	}
	return tc.finish(ctx, b, dir, step)
}

// finish converts the device code to its final form.
func (tc *Toolchain) finish(ctx context.Context, b Build, dir, step string) error {
	path := filepath.Join(dir, linked)
	code, err := os.ReadFile(path)
	if err != nil {
		return &Error{Kind: Infra, Step: step, Message: err.Error(), Err: err}
	}
	if b.Finish != nil {
		if code, err = b.Finish(code); err != nil {
			return &Error{Kind: Rejected, Step: step, Message: err.Error(), Err: err}
		}
	}
	write := func() error {
		if err := os.WriteFile(path, code, 0o600); err != nil {
			return &Error{Kind: Infra, Step: step, Message: err.Error(), Err: err}
		}
		return nil
	}
	if err := write(); err != nil || b.Join == nil {
		return err
	}
	assembled, err := tc.assemble(ctx, b, dir, linked)
	if err != nil {
		return err
	}
	code = b.Join(code, assembled)
	return write()
}

// atLeast reports whether a text is a number of at least the given value.
func atLeast(text string, floor int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= floor
}
