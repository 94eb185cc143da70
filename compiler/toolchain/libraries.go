package toolchain

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/internal/loader"
)

// libraries are the flags by which a build is linked with its libraries. The error says which one is not installed.
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

// installed is the flag that has a library linked: by its name where the linker finds it, and by its path where this
// machine's loader does, as with CUDA's. The error says why a build cannot be linked with it. The source is to blame:
// it need not call one.
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
	if filepath.IsAbs(strings.TrimSpace(string(found))) { // a bare name where it is in none of the linker's folders
		return "-l:" + name, nil
	}
	if path := loader.Find(name); path != "" {
		return path, nil
	}
	return "", &Error{Kind: Rejected, Step: step, Message: "it is not installed on this machine: install the package of the system that has it, or do without the kernel"}
}
