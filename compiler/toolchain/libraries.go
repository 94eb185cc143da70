package toolchain

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// libraries returns the flags that link a build with its libraries. The error names a library that is not installed.
func (tc *Toolchain) libraries(ctx context.Context, b Build) (flags []string, err error) {
	for _, name := range b.Libraries {
		flag, err := tc.installed(ctx, b, name)
		if err != nil {
			return nil, err
		}
		flags = append(flags, flag)
	}
	return flags, nil
}

// installed returns the flag that links a library: by name if the linker finds it, or by path if this machine's
// loader does, as for CUDA. The error, which explains why the library cannot be linked, is of kind Rejected, since
// the source need not call a library.
func (tc *Toolchain) installed(ctx context.Context, b Build, name string) (flag string, err error) {
	step := "linking with " + name
	if !b.Target.IsHost() {
		return "", &Error{Kind: Rejected, Step: step, Message: "libraries are taken from the machine that compiles, and the target has another architecture: compile on the device"}
	}
	path, flags, err := tc.compiler(b.Target)
	if err != nil {
		return "", err
	}
	found, err := exec.CommandContext(ctx, path, append(flags, "--print-file-name="+name)...).Output()
	if err != nil {
		return "", &Error{Kind: Infra, Step: step, Message: fmt.Sprintf("asking %s for it: %v", tc.Name, err), Err: err}
	}
	if filepath.IsAbs(strings.TrimSpace(string(found))) { // a bare name if it is in none of the linker's directories
		return "-l:" + name, nil
	}
	if path := sandbox.FindLibrary(name); path != "" {
		return path, nil
	}
	return "", &Error{Kind: Rejected, Step: step, Message: "it is not installed on this machine: install the package of the system that has it, or do without the kernel"}
}
