package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Simulated prints a program's launches, and under SYMBOL_run the function of the ABI that has a processor play them.
func Simulated(symbol string, f *ir.Func, d *ctext.Declarations) (string, backend.Info) {
	all, places := globals(f)
	var text, run strings.Builder
	for k, l := range launchesOf(f) {
		name := fmt.Sprintf("%s_%d", symbol, k)
		used := globalsOf(l.loop, all)
		fmt.Fprintf(&text, "#line 1 \"%s\"\n%s", name, kernel(name, l, used, d, dialect.Text))
		text.WriteString(thread(name, used))
		run.WriteString(launched(name, l, used, places))
	}
	fmt.Fprintf(&text, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n", symbol)
	text.WriteString("  char *const shared = workspace;\n  (void)args, (void)prepared, (void)shared;\n")
	text.WriteString(run.String())
	text.WriteString("}\n")
	return text.String(), backend.Info{Prepared: f.Prepared, WorkspaceBytes: f.WorkspaceBytes}
}

// globals are the buffers in global memory of a program, in the order of its parameters, and where the function of the
// ABI has them.
func globals(f *ir.Func) (all []global, places map[string]string) {
	places = map[string]string{}
	add := func(b *ir.Buffer, name, place string) {
		all = append(all, global{Buffer: b, name: name})
		places[name] = place
	}
	for k, b := range f.Args {
		if b != nil {
			add(b, fmt.Sprintf("a%d", k), fmt.Sprintf("args[%d]", b.Index))
		}
	}
	for k, p := range f.Prepared {
		add(p.Buffer, fmt.Sprintf("p%d", k), fmt.Sprintf("prepared[%d]", p.Buffer.Index))
	}
	for k, st := range f.Body {
		if a, ok := st.(*ir.Alloc); ok {
			add(a.Buffer, fmt.Sprintf("w%d", k), fmt.Sprintf("(void *)(shared + %d)", a.Buffer.OffsetBytes))
		}
	}
	return all, places
}

// thread prints the arguments of a kernel, and a function that calls it with them.
func thread(name string, used []global) string {
	var fields, values strings.Builder
	for _, g := range used {
		fmt.Fprintf(&fields, " %s *%s;", ctext.TypeOf(g.Tensor.DType).Scalar, g.name)
		fmt.Fprintf(&values, ", of->%s", g.name)
	}
	return fmt.Sprintf("struct %[1]s_arguments {%[2]s };\nstatic void %[1]s_thread(struct sim_thread *sim, void *closure) {\n"+
		"  const struct %[1]s_arguments *const of = closure;\n  %[1]s(sim%[3]s);\n}\n", name, fields.String(), values.String())
}

// launched prints a launch.
func launched(name string, l launch, used []global, places map[string]string) string {
	var values, outputs []string
	for _, g := range used {
		values = append(values, places[g.name])
		if g.written {
			outputs = append(outputs, fmt.Sprintf("{%s, %d}", places[g.name], g.Elements()))
		}
	}
	return fmt.Sprintf(`  {
    struct %[1]s_arguments of = {%[2]s};
    const struct sim_output outputs[] = {%[3]s};
    struct sim_launch launch = {"%[1]s", %[1]s_thread, &of, %[4]d, outputs, %[5]d, 0};
    sim_run_launch(rt, &launch, %[6]d);
  }
`, name, strings.Join(values, ", "), strings.Join(outputs, ", "), l.threads, len(outputs), l.loop.Extent)
}
