package aot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// planSource prints the generated part of a package: the tables and the function that runs the calls in order.
func (l *layout) planSource() string {
	var b strings.Builder
	b.WriteString("#include \"model.h\"\n\n")
	if len(l.program.Loops) > 0 {
		b.WriteString("#include <string.h>\n\n#define move_bytes memcpy\n\n")
	}
	for k := range l.program.Tasks {
		fmt.Fprintf(&b, "extern TILTH_HIDDEN const struct tilth_kernel %s;\n", kernelSymbol(k))
	}
	if l.checksLibraries {
		fmt.Fprintf(&b, "extern TILTH_HIDDEN const char *%s(void);\n", userkernel.CheckName)
	}
	calls := l.runFunction() // first, since it requests all constants
	b.WriteString(calls)
	l.tensors(&b, "inputs", l.program.Inputs)
	results := l.program.Results()
	l.tensors(&b, "outputs", results)
	l.openOutputs(&b, results)
	l.extents(&b)
	l.checks(&b)
	l.required(&b, len(results))
	l.names(&b)
	fmt.Fprintf(&b, "const struct tilth_plan tilth_plan = {\n  .threads = %d, .arena_bytes = %d, .weights_bytes = %d,\n", l.workers, l.arenaBytes, l.weightsBytes)
	fmt.Fprintf(&b, "  .n_inputs = %d, .n_outputs = %d, .n_counts = %d, .n_calls = %d, .n_open = %d, .open = open_outputs,\n",
		len(l.program.Inputs), len(results), len(results)-len(l.program.Outputs), len(l.program.Calls), len(l.program.Open))
	b.WriteString("  .inputs = inputs, .outputs = outputs, .input_places = inputs_places, .output_places = outputs_places,\n")
	fmt.Fprintf(&b, "  .n_extents = %d, .n_varying_inputs = %d, .n_varying_outputs = %d,\n",
		len(l.program.Extents), len(l.varying(l.program.Inputs)), len(l.varying(l.program.Outputs)))
	fmt.Fprintf(&b, "  .n_checks = %d, .checks = checks, .n_required = %d, .required = required,\n", len(l.program.Checks), len(l.program.Required))
	decoding := "0, .past = -1, .step = -1"
	if d, ok := l.program.Decoding(); ok {
		decoding = fmt.Sprintf("1, .past = %d, .step = %d", d.Past, d.Step)
	}
	fmt.Fprintf(&b, "  .decodes = %s,\n", decoding)
	b.WriteString("  .extents = extents, .varying_inputs = varying_inputs, .varying_outputs = varying_outputs,\n")
	if l.checksLibraries {
		fmt.Fprintf(&b, "  .libraries = %s,\n", userkernel.CheckName)
	}
	b.WriteString("  .call_names = call_names, .run = run,\n};\n")
	return b.String()
}

// kernelSymbol returns the C name of a task's kernel.
func kernelSymbol(task int) string { return fmt.Sprintf("task%d", task) }

func (l *layout) runFunction() string {
	var b strings.Builder
	b.WriteString("\nstatic void run(const struct tilth_runtime *rt, char *arena, char *weights, double *seconds) {\n")
	b.WriteString("  double begin = seconds ? tilth_now() : 0;\n  (void)begin, (void)arena, (void)weights, (void)rt;\n")
	for k := range l.program.Calls {
		if l.program.IsRepeated(k) {
			fmt.Fprintf(&b, "  if (seconds) seconds[%d] = -1;\n", k)
		}
	}
	for k, c := range l.program.Calls {
		b.WriteString(l.loopsBefore(k))
		isRepeated := l.program.IsRepeated(k)
		if len(c.If) > 0 {
			if !isRepeated {
				fmt.Fprintf(&b, "  if (seconds) seconds[%d] = -1;\n", k)
			}
			fmt.Fprintf(&b, "  if (%s) {\n", l.holds(c.If))
		}
		b.WriteString("  " + l.ofZeros(k))
		for _, v := range c.Variants {
			fmt.Fprintf(&b, "if (%s) {\n", l.within(v))
			l.run(&b, k, v.Task)
			b.WriteString("  } else ")
		}
		b.WriteString("{\n")
		l.run(&b, k, c.Task)
		b.WriteString("  }\n")
		before := ""
		if isRepeated {
			before = fmt.Sprintf("(seconds[%[1]d] < 0 ? 0 : seconds[%[1]d]) + ", k)
		}
		fmt.Fprintf(&b, "  if (seconds) { double end = tilth_now(); seconds[%d] = %send - begin; begin = end; }\n", k, before)
		if len(c.If) > 0 {
			b.WriteString("  }\n")
		}
		b.WriteString(l.loopsAfter(k))
	}
	b.WriteString("}\n\n")
	return b.String()
}

// run prints the call of a task.
func (l *layout) run(b *strings.Builder, call, task int) {
	args, prepared := l.call(call, task)
	fmt.Fprintf(b, "    void *const args[] = {%s};\n", pointers(args))
	fmt.Fprintf(b, "    void *const prepared[] = {%s};\n", pointers(prepared))
	fmt.Fprintf(b, "    %s.run(rt, args, prepared, arena + %d);\n", kernelSymbol(task), l.workspace[call])
}

// holds returns the condition under which an execution needs a call.
func (l *layout) holds(conditions []program.Condition) string {
	return humanize.Join(conditions, " && ", func(c program.Condition) string {
		not := "!"
		if c.Is {
			not = ""
		}
		return fmt.Sprintf("%s*(const uint8_t *)(%s)", not, l.value(c.Value))
	})
}

// within returns the condition that the extents of an execution are within the caps of a variant.
func (l *layout) within(v program.Variant) string {
	return humanize.Join(v.Caps, " && ", func(c program.Cap) string { return fmt.Sprintf("%s <= %d", l.count(c.Extent), c.Max) })
}

func pointers(spots []spot) string {
	if len(spots) == 0 {
		return "0"
	}
	return humanize.Join(spots, ", ", spot.String)
}

// tensors prints the tables of inputs or outputs. C has no empty arrays: each table ends with an unused element.
func (l *layout) tensors(b *strings.Builder, table string, values []int) {
	var tensors, places strings.Builder
	for k, v := range values {
		value, shape := l.program.Values[v], l.program.MemoryOf(v)
		bytes := array.Elements(shape) * value.DType.Bytes()
		fmt.Fprintf(b, "static const int64_t %s_shape%d[] = {%s0};\n", table, k, extents(shape))
		fmt.Fprintf(&tensors, "  {%s, %d, %d, %s_shape%d, %d},\n", quote(value.Name), value.DType, len(shape), table, k, bytes)
		s := l.value(v)
		fmt.Fprintf(&places, "{%d, %d}, ", map[bool]int{true: 1}[s.inWeights], s.offset)
	}
	fmt.Fprintf(b, "static const struct tilth_tensor %s[] = {\n%s  {0, 0, 0, 0, 0}};\n", table, tensors.String())
	fmt.Fprintf(b, "static const struct tilth_place %s_places[] = {%s{0, 0}};\n", table, places.String())
}

// openOutputs prints the table of outputs with data-dependent extents.
func (l *layout) openOutputs(b *strings.Builder, results []int) {
	b.WriteString("static const struct tilth_open_output open_outputs[] = {")
	for _, o := range l.program.Open {
		fmt.Fprintf(b, "{%d, %d, %d}, ", o.Output, o.Axis, len(l.program.Outputs)+slices.Index(results[len(l.program.Outputs):], o.Count))
	}
	b.WriteString("{0, 0, 0}};\n")
}

// extents prints the tables of dynamic extents, and of the inputs and outputs that have them.
func (l *layout) extents(b *strings.Builder) {
	b.WriteString("static const struct tilth_extent extents[] = {")
	for _, e := range l.program.Extents {
		fmt.Fprintf(b, "{%s, %d, %d, %d, %d}, ", quote(e.Name), e.Whole(e.Min), e.Whole(e.Max), e.Whole(1), l.value(e.Value).offset)
	}
	b.WriteString("{0, 0, 0, 1, 0}};\n")
	for _, table := range []struct {
		name   string
		values []int
	}{{"inputs", l.program.Inputs}, {"outputs", l.program.Outputs}} {
		fmt.Fprintf(b, "static const struct tilth_varying varying_%s[] = {", table.name)
		for _, v := range l.varying(table.values) {
			fmt.Fprintf(b, "{%d, %d, %d, %d, %d}, ", slices.Index(table.values, v.Value), v.Axis, v.Extent, v.Times, v.Plus)
		}
		b.WriteString("{0, 0, 0, 0, 0}};\n")
	}
}

// checks prints the table of inputs that index axes.
func (l *layout) checks(b *strings.Builder) {
	b.WriteString("static const struct tilth_check checks[] = {")
	for _, c := range l.program.Checks {
		fmt.Fprintf(b, "{%d, %d, %s, %s, (const struct tilth_strided_axis[]){", c.Input, len(c.Axes), l.form(c.First), l.form(c.Extent))
		for _, a := range c.Axes {
			fmt.Fprintf(b, "{%s, %d}, ", l.form(a.Count), a.Stride)
		}
		b.WriteString("{{0, 0}, 0}}}, ")
	}
	b.WriteString("{0, 0, {0, 0}, {0, 0}, 0}};\n")
}

// form returns the C initialiser of a number that depends on the extents.
func (l *layout) form(f program.Form) string {
	times := make([]int64, len(l.program.Extents))
	copy(times, f.Times)
	return fmt.Sprintf("{%d, (const int64_t[]){%s0}}", f.Plus, extents(times))
}

// required prints the table of results that must be true.
func (l *layout) required(b *strings.Builder, results int) {
	b.WriteString("static const struct tilth_requirement required[] = {")
	for k, r := range l.program.Required {
		why := r.Why[:min(len(r.Why), maxWhy)]
		fmt.Fprintf(b, "{%d, %s}, ", results-len(l.program.Required)+k, quote(strings.ToValidUTF8(why, "")))
	}
	b.WriteString("{0, 0}};\n")
}

// maxWhy is the room for a message in the runtime.
const maxWhy = 500

// varying returns the open axes of values.
func (l *layout) varying(values []int) (list []program.Varying) {
	for _, v := range l.program.Varying {
		if slices.Contains(values, v.Value) {
			list = append(list, v)
		}
	}
	return list
}

func extents(shape []int64) string {
	var b strings.Builder
	for _, e := range shape {
		fmt.Fprintf(&b, "%d, ", e)
	}
	return b.String()
}

func (l *layout) names(b *strings.Builder) {
	b.WriteString("static const char *const call_names[] = {\n")
	for _, c := range l.program.Calls {
		fmt.Fprintf(b, "  %s,\n", quote(c.Name))
	}
	b.WriteString("  0};\n")
}

// quote returns a C string. All but plain characters are in octal, which ends after three digits.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '?' {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tensorInfos describes values for the manifest.
func (l *layout) tensorInfos(values []int) []Tensor {
	list := []Tensor{}
	for _, v := range values {
		value := l.program.Values[v]
		t := Tensor{Name: value.Name, DType: value.DType.String(), Shape: slices.Clone(l.program.MemoryOf(v))}
		for _, open := range l.varying([]int{v}) {
			e := l.program.Extents[open.Extent]
			t.Varying = append(t.Varying, Varying{Axis: open.Axis, Extent: e.Name, Times: open.Times, Plus: open.Plus, step: e.Whole(1)})
		}
		list = append(list, t)
	}
	return list
}
