package userkernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

const product = `tilth-workload 1
input t0 f32[4,8]
constant t1 f32[8,16]
sum t2 f32[4,16] over 8 = (mul [t0 i0 r0] [t1 r0 i1])
output t2
`

const description = `{
  "name": "product", "arch": "x86-64", "features": ["fma", "avx2"],
  "workloads": [{"text": [
    "tilth-workload 1", "input t0 f32[$M,$K]", "constant t1 f32[$K,$N]",
    "sum t2 f32[$M,$N] over $K = (mul [t0 i0 r0] [t1 r0 i1])", "output t2"
  ]}],
  "knobs": [{"name": "MR", "values": [1, 2, 3]}, {"name": "NR", "values": [8, 16]}],
  "legal": "M % MR == 0 && MR * NR <= 32",
  "default": {"MR": 2, "NR": 16},
  "pack": [{"constant": 0, "dims": ["1/NR", "0", "1%NR"]}],
  "workspace": "4 * THREADS * MR"
}`

func parse(t testing.TB, description string) *Kernel {
	t.Helper()
	k, err := parseFolder([]byte(description), []byte("void kernel(void) {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func workload(t testing.TB) *expr.Workload {
	t.Helper()
	w, err := expr.Parse(product)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTraceHasAllOfTheKernel(t *testing.T) {
	k, w := parse(t, description), workload(t)
	c, err := k.At(w, []int64{2, 16})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(c.Trace(), "\n"), "\n")
	again, err := Replay(w, lines)
	if err != nil {
		t.Fatal(err)
	}
	if again.Kernel.Digest() != k.Digest() || again.Point() != "MR=2 NR=16" || again.Trace() != c.Trace() || again.Kernel.Source != k.Source {
		t.Errorf("%s replays as %s", c.Trace(), again.Trace())
	}
	if bytes, err := again.WorkspaceBytes(3); err != nil || bytes != 24 {
		t.Errorf("workspace %d, %v", bytes, err)
	}
	layouts, err := again.Layouts()
	if want := []Dim{{Dim: 1, Factor: 16}, {Dim: 0}, {Dim: 1, Factor: 16, Inner: true}}; err != nil || len(layouts[0]) != 3 || layouts[0][0] != want[0] ||
		layouts[0][1] != want[1] || layouts[0][2] != want[2] {
		t.Errorf("layouts %v, %v", layouts, err)
	}
	if origin := Origin([]byte("tilth-trace 1\n" + c.Trace())); origin != "kernel=product MR=2 NR=16" {
		t.Errorf("the trace is of %q", origin)
	}
	if origin := Origin([]byte("tilth-trace 1\nsplit 1 0 5 1\n")); origin != "" {
		t.Errorf("a schedule is of the kernel %q", origin)
	}
	for name, bad := range map[string][]string{
		"a value that the knob lacks": {lines[0], "point 5 16"},
		"too few values":              {lines[0], "point 2"},
		"a second way to write it":    {strings.Replace(lines[0], ",", ", ", 1), lines[1]},
		"no values":                   lines[:1],
		"a number with a sign":        {lines[0], "point +2 16"},
	} {
		if _, err := Replay(w, bad); err == nil {
			t.Errorf("%s replays", name)
		}
	}
}

func TestConditionsSayWhatIsLegal(t *testing.T) {
	k, w := parse(t, description), workload(t)
	for point, legal := range map[[2]int64]bool{{1, 8}: true, {2, 16}: true, {3, 8}: false} {
		c, err := k.At(w, point[:])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Legal(1); (err == nil) != legal {
			t.Errorf("%v: %v", point, err)
		}
	}
}

func TestFormBindsEachNameOnce(t *testing.T) {
	k := parse(t, description)
	if values, ok := k.Match(workload(t)); !ok || values["M"] != 4 || values["K"] != 8 || values["N"] != 16 {
		t.Errorf("%v %v", values, ok)
	}
	for _, text := range []string{
		strings.Replace(product, "over 8", "over 9", 1), product + "output t2\n", strings.Replace(product, "f32[4,8]", "f32[x,8]", 1),
		strings.Replace(product, "mul", "add", 1), strings.TrimSuffix(product, "\n"),
	} {
		if _, ok := k.Workloads[0].match(text); ok {
			t.Errorf("%q has the form", text)
		}
	}
}

func TestExpressions(t *testing.T) {
	names := map[string]int64{"A": 7, "B": -2, "BIG": 1 << 62}
	known := func(name string) bool { _, ok := names[name]; return ok }
	for text, want := range map[string]int64{
		"1 + 2 * 3": 7, "(1 + 2) * 3": 9, "A % 4 == 3": 1, "A / 2": 3, "-A + 1": -6, "!A": 0, "!0": 1, "A > 3 && B < 0": 1,
		"0 && 1 / 0": 0, "1 || 1 / 0": 1, "A - 1 - 1": 5, "A>=7": 1, "A != 7": 0, "B * B": 4, "2 <= 1": 0, "- - A": 7,
	} {
		e, err := parseExpression(text, known)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e(names); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1 / 0", "A % 0", "BIG * 4", "BIG + BIG", "-BIG - BIG - BIG", "BIG * BIG"} {
		e, err := parseExpression(text, known)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if v, err := e(names); err == nil {
			t.Errorf("%s is %d", text, v)
		}
	}
	for _, text := range []string{"", "1 +", "(1", "1)", "C", "a", "1 2", "A = 3", strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), "99999999999999999999"} {
		if _, err := parseExpression(text, known); err == nil {
			t.Errorf("%q is an expression", text)
		}
	}
}

func TestBadDescriptionsGetOneClearError(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"an unknown field":             {`"name":`, `"nam":`, `unknown field "nam"`},
		"a feature in capitals":        {`"avx2"`, `"AVX2"`, `features: unknown feature "AVX2" of x86-64: want one of sse3, `},
		"a feature of another machine": {`"avx2"`, `"neon"`, `features: unknown feature "neon" of x86-64`},
		"a feature on two lines":       {`"avx2"`, `"avx2\nfma"`, `features: unknown feature "avx2\nfma" of x86-64`},
		"a feature twice":              {`"avx2"`, `"fma"`, `features: duplicate fma`},
		"a bad name":                   {`"product"`, `"A b"`, `name "A b": want`},
		"an unknown architecture":      {`"x86-64"`, `"z80"`, `arch "z80": want`},
		"values that descend":          {`[8, 16]`, `[16, 8]`, `knob NR: want ascending values`},
		"a value twice":                {`[8, 16]`, `[8, 8]`, `knob NR: want ascending values`},
		"a knob twice":                 {`"name": "NR"`, `"name": "MR"`, `duplicate knob MR`},
		"a knob in small letters":      {`"name": "NR"`, `"name": "nr"`, `knob "nr": want`},
		"a knob that is an extent":     {`"name": "NR"`, `"name": "N"`, `name "N": want`},
		"a condition on nothing":       {`M % MR`, `Q % MR`, `legal: Q is not a knob`},
		"a default that is no value":   {`"NR": 16}`, `"NR": 5}`, `default: knob NR lacks`},
		"a default for a part":         {`, "NR": 16}`, `}`, `default: want a value for each knob`},
		"a dimension that is a word":   {`"0"`, `"x"`, `pack: constant 0: dimension "x"`},
		"a source in the description":  {`"name":`, `"source": "x", "name":`, `source is not given here`},
		"something behind it":          {`"4 * THREADS * MR"` + "\n}", `""} {}`, `something follows`},
		"numerics that nobody knows":   {`"name":`, `"numerics": "lax", "name":`, `numerics "lax": want`},
		"names that differ by form":    {`"output t2"` + "\n  ]}]", `"output t2"]}, {"text": ["$X"]}]`, `workload 1 uses other names`},
		"no workload":                  {`"text": [`, `"text": [], "define": {"X": 1}}, {"text": [`, `workload 0: text is missing`},
		"a dollar without a name":      {`"output t2"`, `"output $"`, `name "": want`},
		"a feature for cards":          {`"x86-64"`, `"cuda"`, `features: a kernel for arch cuda has none`},
		"a packed constant for cards":  {`"x86-64", "features": ["fma", "avx2"]`, `"cuda"`, `pack: kernels for arch cuda read constants as they are`},
		"a definition that stands too": {`"output t2"` + "\n  ]", `"output t2"], "define": {"M": 1}`, `M is defined, but the text binds it`},
	} {
		if !strings.Contains(description, c.old) {
			t.Fatalf("%s: %q is not in the description", name, c.old)
		}
		_, err := parseFolder([]byte(strings.Replace(description, c.old, c.new, 1)), []byte("x"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestKernelFoldersAreBounded(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "kernel.json") {
		t.Errorf("an empty folder: %v", err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(DescriptionFile, description)
	write(SourceFile, "x")
	if _, err := Read(dir); err != nil {
		t.Error(err)
	}
	for _, source := range []string{" \n", "a\x00b", "// caf\xe9\n", strings.Repeat("x", MaxBytes+1), strings.Repeat("x", MaxBytes)} {
		write(SourceFile, source)
		if _, err := Read(dir); err == nil {
			t.Errorf("a source of %d bytes is read", len(source))
		}
	}
}

func TestLaterVersionsHaveTheSameNumber(t *testing.T) {
	k, other := parse(t, description), parse(t, strings.Replace(description, "MR * NR <= 32", "MR * NR <= 64", 1))
	if k.Digest() == other.Digest() || k.Number() != other.Number() {
		t.Errorf("%s %d, %s %d", k.Digest(), k.Number(), other.Digest(), other.Number())
	}
}

// FuzzFolder checks that an accepted kernel survives a round trip, and matches a workload or does not.
func FuzzFolder(f *testing.F) {
	f.Add([]byte(description), []byte("void kernel(void) {}"), product)
	f.Add([]byte(`{"name":"a","arch":"arm64","workloads":[{"text":["$A$A"]}],"legal":"A/A%A"}`), []byte("x"), "00\n")
	f.Fuzz(func(t *testing.T, description, source []byte, text string) {
		k, err := parseFolder(description, source)
		if err != nil {
			return
		}
		again, err := Parse(k.Text())
		if err != nil || again.Digest() != k.Digest() {
			t.Fatalf("%s is read as another kernel: %v", k.Text(), err)
		}
		w, err := expr.Parse(text)
		if err != nil {
			return
		}
		values := make([]int64, len(k.Knobs))
		for i, knob := range k.Knobs {
			values[i] = knob.Values[0]
		}
		if c, err := k.At(w, values); err == nil {
			_ = c.Legal(1)
			_, _ = c.Layouts()
			_, _ = c.WorkspaceBytes(1)
			if _, err := Replay(w, strings.Split(strings.TrimSuffix(c.Trace(), "\n"), "\n")); err != nil {
				t.Fatal(err)
			}
		}
	})
}
