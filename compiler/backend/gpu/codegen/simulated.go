package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Simulated prints a program's launches and the ABI function SYMBOL_run, which simulates them on a processor.
func Simulated(symbol string, f *ir.Func, d *cprint.Declarations) (string, backend.Info) {
	var text, run strings.Builder
	for _, k := range Kernels(symbol, f, d, macros.Text) {
		fmt.Fprintf(&text, "#line 1 \"%s\"\n%s", k.Name, k.Text)
		text.WriteString(thread(k))
		run.WriteString(launched(k))
	}
	fmt.Fprintf(&text, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n", symbol)
	text.WriteString("  char *const shared = workspace;\n  (void)args, (void)prepared, (void)shared;\n")
	text.WriteString(run.String())
	text.WriteString("}\n")
	return text.String(), backend.Info{Prepared: f.Prepared, WorkspaceBytes: f.WorkspaceBytes}
}

// thread prints the arguments of a kernel and a function that calls it with them.
func thread(k Kernel) string {
	var fields, values strings.Builder
	for _, g := range k.globals {
		fmt.Fprintf(&fields, " %s *%s;", cprint.TypeOf(g.Tensor.DType).Scalar, g.name)
		fmt.Fprintf(&values, ", of->%s", g.name)
	}
	for _, m := range k.maps {
		fmt.Fprintf(&fields, " struct sim_map %s;", m.name)
		fmt.Fprintf(&values, ", of->%s", m.name)
	}
	return fmt.Sprintf("struct %[1]s_arguments {%[2]s };\nstatic void %[1]s_thread(struct sim_thread *sim, void *closure) {\n"+
		"  const struct %[1]s_arguments *const of = closure;\n  %[1]s(sim%[3]s);\n}\n", k.Name, fields.String(), values.String())
}

// launched prints a launch.
func launched(k Kernel) string {
	var values, outputs []string
	for _, g := range k.globals {
		values = append(values, g.place.expression())
		if g.written {
			outputs = append(outputs, fmt.Sprintf("{%s, %d}", g.place.expression(), g.Elements()))
		}
	}
	for _, m := range k.maps {
		values = append(values, encoded(m))
	}
	return fmt.Sprintf(`  {
    struct %[1]s_arguments of = {%[2]s};
    const struct sim_output outputs[] = {%[3]s};
    struct sim_launch launch = {"%[1]s", %[1]s_thread, &of, %[4]d, outputs, %[5]d, 0};
    sim_run_launch(rt, &launch, %[6]d);
  }
`, k.Name, strings.Join(values, ", "), strings.Join(outputs, ", "), k.Threads, len(outputs), k.Blocks)
}

// encoded returns a tensor map in the simulator's representation.
func encoded(m tensorMap) string {
	size := m.of.Tensor.DType.Bytes()
	var last, strides, box []string
	for _, d := range m.Dims {
		last = append(last, fmt.Sprint(d.Extent-1))
		strides = append(strides, fmt.Sprint(d.Stride*size))
		box = append(box, fmt.Sprint(d.Box))
	}
	return fmt.Sprintf("{.address = (uintptr_t)%s, .kind = SIM_MAP, .dimensions = %d, .element_bytes = %d, .panel = %d, .last = {%s}, .strides = {%s}, .box = {%s}}",
		m.of.place.expression(), len(m.Dims), size, m.PanelBytes, strings.Join(last, ", "), strings.Join(strides, ", "), strings.Join(box, ", "))
}
