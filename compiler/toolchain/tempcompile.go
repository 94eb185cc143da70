package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// compileTemporary compiles a source for this machine. It returns the open, already unlinked output file.
func compileTemporary(ctx context.Context, cc, source string, flags ...string) (*os.File, error) {
	dir, err := os.MkdirTemp("", "tilth-compiled-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	text, made := filepath.Join(dir, "source.c"), filepath.Join(dir, "made")
	if err := os.WriteFile(text, []byte(source), 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"-std=gnu11", "-O1", text, "-o", made}, flags...)
	if said, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cc, err, usefulLine(string(said)))
	}
	return os.Open(made)
}
