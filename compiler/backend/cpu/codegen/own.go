package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// prototype is the C prototype of user-written kernels.
const prototype = "void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace)"

// ownKernel adds a user-written kernel as a separate translation unit, which isolates its macros and functions, and
// prints the function that runs it.
func (u *Unit) ownKernel(symbol string, s *schedule.Schedule) (info backend.Info, err error) {
	c := s.Own
	if u.target == nil {
		return info, fmt.Errorf("%s is for processors, not for plain C", c.Kernel.Label())
	}
	if info.WorkspaceBytes, err = c.On(u.target); err != nil {
		return info, err
	}
	args, inputs := make([]string, len(s.Workload.Args())), len(s.Workload.Inputs)
	for k := range args {
		args[k] = fmt.Sprintf("args[%d]", k)
	}
	for constant, t := range s.Workload.Constants {
		if dims := s.Packs[constant]; dims != nil {
			pack := lower.NewPack(constant, t, nil, dims)
			pack.Buffer.Index = len(info.Prepared)
			args[inputs+constant] = fmt.Sprintf("prepared[%d]", pack.Buffer.Index)
			info.Prepared = append(info.Prepared, pack)
		}
	}
	name := symbol + "_own"
	u.own = append(u.own, toolchain.File{Name: name + ".c", Text: c.Unit(name, cruntime.Header, prototype, u.target.Threads())})
	fmt.Fprintf(&u.code, "extern void %s(const struct tilth_runtime *rt, void *const *args, void *workspace) __attribute__((visibility(\"hidden\")));\n", name)
	fmt.Fprintf(&u.code, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n", symbol)
	fmt.Fprintf(&u.code, "  void *const own[] = {%s};\n  %s(rt, own, workspace);\n}\n", strings.Join(args, ", "), name)
	return info, nil
}
