package registry_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"golang.org/x/tools/txtar"
)

// kernel is a section of a file in testdata/kernels: the file's workload on a target.
type kernel struct {
	// name begins with the target and its additional features, each after a plus sign.
	name     string
	on       *target.Target
	workload string
	// fields choose the schedule: values of the workload's variables ("with"), a level of numerics, an algorithm
	// ("by"), and knobs or a point of the space ("at"). The other fields are expectations.
	fields map[string]string
	// trace replaces the choice. "trace: above" repeats that of the section before.
	trace string
	// steps are the sections "after PASS" behind it.
	steps []*txtar.File
}

// TestKernels compiles each workload of testdata/kernels for several targets. It compares the program after the passes
// that a file names, and looks for the instructions that it expects of clang, for processors ("clang") and NVIDIA GPUs
// ("ptx"), and in the slow tier of gcc, or for words in the printed source.
func TestKernels(t *testing.T) {
	files, err := filepath.Glob("testdata/kernels/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before := txtar.Format(a)
			t.Cleanup(func() {
				after := txtar.Format(a)
				if !*kerneltest.Update || bytes.Equal(before, after) {
					return
				}
				if err := os.WriteFile(path, after, 0o600); err != nil {
					t.Error(err)
				}
			})
			for _, k := range kernels(t, a) {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					k.check(t)
				})
			}
		})
	}
}

// kernels returns the sections of a file. Its first section is the workload.
func kernels(t *testing.T, a *txtar.Archive) (all []*kernel) {
	t.Helper()
	for i, f := range a.Files {
		if i == 0 {
			continue
		}
		if strings.HasPrefix(f.Name, "after ") {
			last := all[len(all)-1]
			last.steps = append(last.steps, &a.Files[i])
			continue
		}
		k := &kernel{name: f.Name, workload: string(a.Files[0].Data), fields: map[string]string{}}
		head, trace, ok := strings.Cut(string(f.Data), "tilth-trace 1\n")
		if ok {
			k.trace = "tilth-trace 1\n" + trace
		}
		for line := range strings.Lines(head) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			k.fields[key] = value
		}
		if k.fields["trace"] == "above" {
			k.trace = all[len(all)-1].trace
		}
		features := strings.Split(strings.Fields(f.Name)[0], "+")
		threads := 2 // on any machine; boards have one
		if slices.Contains(target.Boards(), features[0]) {
			threads = 0
		}
		on, err := registry.Target(features[0], threads)
		if err != nil {
			t.Fatal(err)
		}
		k.on = on.Clone()
		k.on.CPU.Features = slices.Sorted(slices.Values(slices.Concat(on.CPU.Features, features[1:])))
		all = append(all, k)
	}
	return all
}

// schedule returns the schedule of the section.
func (k *kernel) schedule(t *testing.T) *schedule.Schedule {
	t.Helper()
	var variables []string
	for set := range strings.SplitSeq(k.fields["with"], "; ") {
		name, value, _ := strings.Cut(set, "=")
		variables = append(variables, "$"+name, value)
	}
	replace := strings.NewReplacer(variables...)
	w, err := expr.Parse(replace.Replace(k.workload))
	if err != nil {
		t.Fatal(err)
	}
	if k.trace != "" {
		s, err := schedule.Replay(w, []byte(replace.Replace(k.trace)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	numerics, err := schedule.ParseNumerics(cmp.Or(k.fields["numerics"], "strict"))
	if err != nil {
		t.Fatal(err)
	}
	space, err := registry.Space(w, k.on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return k.applied(t, space)
}

// applied returns the schedule of the section's point of a space.
func (k *kernel) applied(t *testing.T, s *searchspace.Space) *schedule.Schedule {
	t.Helper()
	if by, ok := k.fields["by"]; ok {
		all := s.Algorithms()
		i := slices.IndexFunc(all, func(a searchspace.Algorithm) bool { return a.Name == by })
		if i < 0 {
			t.Fatalf("there is no algorithm %s among %v", by, all)
		}
		s = s.Of(all[i])
	}
	values := map[string][]int64{}
	for set := range strings.FieldsSeq(k.fields["knobs"]) {
		name, value, _ := strings.Cut(set, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		values[name] = []int64{n}
	}
	s, err := s.Restrict(values)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Default()
	if at, set := k.fields["at"]; set {
		var ok bool
		if p, ok = s.Parse(at); !ok {
			t.Fatalf("%s is not legal", at)
		}
	}
	made, err := s.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// check compares the programs after passes with the golden ones, and checks the expected instructions.
func (k *kernel) check(t *testing.T) {
	b, err := registry.Of(k.on)
	if err != nil {
		t.Fatal(err)
	}
	s := k.schedule(t)
	steps, err := b.Dump(s, k.on, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		i := slices.IndexFunc(steps, func(s backend.Step) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("there is no pass %s", name)
		}
		return steps[i].Text
	}
	for _, f := range k.steps {
		got := text(strings.TrimPrefix(f.Name, "after "))
		if *kerneltest.Update {
			f.Data = []byte(got)
		}
		if got != string(f.Data) {
			t.Errorf("the program %s (-update writes it anew) is\n%s", f.Name, got)
		}
	}
	source := text(backend.Source)
	for _, what := range slices.Sorted(maps.Keys(k.fields)) {
		var in, start string
		switch what {
		case "gcc", "clang":
			if what == "gcc" && testing.Short() {
				continue
			}
			in, start = k.instructions(t, what, source), "(?m)^"
		case "ptx":
			in, start = k.ptx(t, source), "(?m)^"
		case "source":
			in = source
		case "with", "numerics", "by", "knobs", "at", "trace":
			continue
		default:
			t.Errorf("there is no field %s", what)
			continue
		}
		if wrong := expected(k.fields[what], start, in); wrong != "" {
			t.Errorf("by %s: %s in\n%s\nof\n%s", what, wrong, in[max(0, strings.Index(in, "kernel_")):], s.Trace())
		}
	}
}

// expected returns how a text differs from a list of regular expressions, or "". "4 x" is there four times, "-x"
// never, and "x" at least once.
func expected(list, start, text string) string {
	for item := range strings.SplitSeq(list, ", ") {
		want, pattern := -1, item
		if rest, ok := strings.CutPrefix(item, "-"); ok {
			want, pattern = 0, rest
		} else if n, rest, ok := strings.Cut(item, " "); ok {
			if times, err := strconv.Atoi(n); err == nil {
				want, pattern = times, rest
			}
		}
		if got := len(regexp.MustCompile(start+pattern).FindAllString(text, -1)); want < 0 && got == 0 || want >= 0 && got != want {
			return fmt.Sprintf("%q is there %d times", item, got)
		}
	}
	return ""
}

var (
	// function matches a function of the kernel in an assembly file. Those that pack its constants have other names.
	function = regexp.MustCompile(`(?ms)^kernel_\w+:.*?^\s*\.size\s+kernel_`)
	// operation matches an instruction or a directive, without PTX's predicate or the name of an encoding before it.
	operation = regexp.MustCompile(`(?m)^\s*(?:@!?%p\d+\s+|\{vex\}\s+)?([a-z.][^\n]*[^\n:])$`)
)

// operations returns the instructions and directives of an assembly text, a line each.
func operations(text string) string {
	var all strings.Builder
	for _, m := range operation.FindAllStringSubmatch(text, -1) {
		all.WriteString(strings.Join(strings.Fields(m[1]), " ") + "\n")
	}
	return all.String()
}

// instructions returns the instructions that a C compiler makes of the kernel.
func (k *kernel) instructions(t *testing.T, compiler, source string) string {
	t.Helper()
	program, flags := "clang-19", k.on.ClangFlags()
	if compiler == "gcc" {
		program, flags = k.on.GCC(), k.on.GCCFlags()
	}
	file, err := toolchaintest.Program(t, program, append(flags, "-std=gnu11", "-O1", "-ffp-contract=off", "-ffreestanding", "-w", "-S"), source)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return operations(strings.Join(function.FindAllString(string(text), -1), "\n"))
}

// ptx returns the instructions that clang makes of the kernel for an NVIDIA GPU. It fails if results are in local
// memory, or if NVIDIA's assembler, where there is one, spills registers or serialises products.
func (k *kernel) ptx(t *testing.T, source string) string {
	t.Helper()
	arch := k.on.GPU.Arch
	file, err := toolchaintest.Program(t, "clang-19", append(macros.NVPTXFlags(arch), "-w"), macros.NVPTX()+source)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bounded, err := macros.BoundThreads(string(text))
	if err != nil || strings.Contains(bounded, ".local") {
		t.Errorf("error %v, or results in local memory:\n%s", err, bounded)
	}
	assembler := cmp.Or(os.Getenv(toolchain.AssemblerVariable), "ptxas")
	said, _ := exec.CommandContext(t.Context(), assembler, "--version").Output() // without a version it is not there
	if m := version.FindSubmatch(said); m != nil && k.on.Assembles(string(m[1])) {
		input := filepath.Join(t.TempDir(), "kernel.ptx") // not the file, which the cache of programs may share
		if err := os.WriteFile(input, []byte(bounded), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), assembler, "-v", "-arch="+arch, input, "-o", input+".cubin").CombinedOutput()
		if err != nil || spills.Match(said) {
			t.Errorf("error %v of the assembler, or it warns:\n%s", err, said)
		}
	}
	return operations(bounded)
}

var (
	version = regexp.MustCompile(`\bV(\d+\.\d+)`)
	spills  = regexp.MustCompile(`[1-9]\d* bytes spill|Potential Performance Loss`)
)
