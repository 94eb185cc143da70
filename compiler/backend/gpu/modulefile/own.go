package modulefile

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// cardHeader is the header for user-written GPU kernels.
var cardHeader = Card()[0].Text

// prototype is the C prototype of such kernels.
const prototype = "int kernel(const struct tilth_card *card, void *const *args, void *workspace)"

// Written is a candidate with a user-written GPU kernel, which is code for the host.
type Written struct {
	kernel         backend.Kernel
	name           string
	source         toolchain.File
	workspaceBytes int64
}

// PrintWritten prints such a candidate under a symbol that is unique in its module. It returns an error if the kernel
// does not support the target.
func PrintWritten(symbol string, k backend.Kernel, t *target.Target) (*Written, error) {
	p, err := written(symbol, k.Schedule, t)
	if err != nil {
		return nil, fmt.Errorf("candidate %.12s: %w", k.ID, err)
	}
	p.kernel = k
	return p, nil
}

func written(symbol string, s *schedule.Schedule, t *target.Target) (*Written, error) {
	workspace, err := s.Own.On(t)
	if err != nil {
		return nil, err
	}
	p := &Written{name: symbol + "_own", workspaceBytes: workspace}
	p.source = toolchain.File{Name: p.name + ".c", Text: s.Own.Unit(p.name, cruntime.Header+cardHeader, prototype, t.Threads())}
	return p, nil
}

// Size implements backend.Printed.
func (p *Written) Size() int { return len(p.source.Text) }

// declaration declares the kernel.
func (p *Written) declaration() string {
	return fmt.Sprintf("extern %s __attribute__((visibility(\"hidden\")));\n", strings.Replace(prototype, "kernel", p.name, 1))
}

// WrittenModule returns the build of candidates with user-written kernels, all of w and t: a shared object with the
// table tilth_module, whose functions do nothing, and tilth_card_kernels, which do the work.
func WrittenModule(w *expr.Workload, candidates []*Written, t *target.Target) (toolchain.Build, error) {
	var declarations, names strings.Builder
	b := toolchain.Build{Target: t, Form: toolchain.Kernels, Level: toolchain.KernelLevel}
	var entries []string
	var kernels []*userkernel.Kernel
	for _, p := range candidates {
		declarations.WriteString(p.declaration())
		fmt.Fprintf(&names, "%s, ", p.name)
		entries = append(entries, fmt.Sprintf("{\"%s\", 0, 0, not_here, %d, 0, %g}", p.kernel.ID, p.workspaceBytes, p.kernel.Schedule.ErrorGrowth()))
		b.AddOwn([]toolchain.File{p.source})
		kernels = append(kernels, p.kernel.Schedule.Own.Kernel)
	}
	table := cruntime.Header + cardHeader + declarations.String() +
		"static void not_here(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {}\n" +
		codegen.ModuleTable(w, entries) +
		fmt.Sprintf("const tilth_card_kernel tilth_card_kernels[] = {%s0};\n", names.String())
	b.Sources = append(b.Sources, toolchain.File{Name: "kernels.c", Text: table})
	check, libraries, err := userkernel.Check(kernels, "")
	if err != nil {
		return toolchain.Build{}, err
	}
	b.AddLibraries(libraries, check)
	return b, nil
}

// addWritten adds a user-written kernel to a package. It is compiled beside the unit, which calls it.
func (u *unit) addWritten(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	p, err := written(symbol, s, u.target)
	if err != nil {
		return backend.Info{}, err
	}
	u.own = append(u.own, p.source)
	u.host.WriteString(p.declaration())
	fmt.Fprintf(&u.host, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n  tilth_device_own(rt, %s, \"%s\", args, workspace);\n}\n",
		symbol, p.name, s.Own.Kernel.Name)
	u.describe(symbol, id, p.workspaceBytes, s.ErrorGrowth())
	return backend.Info{WorkspaceBytes: p.workspaceBytes}, nil
}
