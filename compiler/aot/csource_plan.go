package aot

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// kernelHeaderName is the header shared by plans and kernels.
const kernelHeaderName = "tilth_kernel.h"

// plan returns the source that runs the kernels in order. It contains its own kernel declarations, so that archives
// of different versions can be linked into one program.
func (s *source) plan() string {
	var b strings.Builder
	calls := s.calls()
	for _, v := range s.program.Results() { // requests constants that are outputs
		s.value(v)
	}
	header := slices.IndexFunc(s.runtime.Headers, func(f toolchain.File) bool { return f.Name == kernelHeaderName })
	fmt.Fprintf(&b, "#include \"%s.h\"\n\n%s\n", s.prefix, s.runtime.Headers[header].Text)
	if len(s.program.Loops) > 0 { // a board may have no C library
		b.WriteString("static void move_bytes(char *to, const char *from, int64_t bytes) {\n  while (bytes-- > 0) *to++ = *from++;\n}\n\n")
	}
	for k := range s.program.Tasks {
		fmt.Fprintf(&b, "extern const struct tilth_kernel %s;\n", s.symbol(k))
	}
	upper := strings.ToUpper(s.prefix)
	fmt.Fprintf(&b, `
#ifndef %[2]s_OWN_ARENA
#ifndef %[2]s_ARENA_ATTRIBUTES
#define %[2]s_ARENA_ATTRIBUTES
#endif
uint8_t %[1]s_arena[%[2]s_ARENA_BYTES] __attribute__((aligned(64))) %[2]s_ARENA_ATTRIBUTES;
#endif

static void whole(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  (void)rt;
  body(closure, 0, n, 0);
}

int %[1]s_run(void) {
%[4]s  static const struct tilth_runtime runtime = {1, whole};
  const struct tilth_runtime *const rt = &runtime;
  char *const arena = (char *)%[1]s_arena, *const weights = (char *)(uintptr_t)%[1]s_weights;
  (void)arena, (void)weights, (void)rt;
%[3]s%[5]s  return 0;
}
`, s.prefix, upper, calls, s.inputChecks(), s.requirements())
	return b.String()
}

// calls returns the kernel calls in order, each under the conditions of its If.
func (s *source) calls() string {
	var b strings.Builder
	for k, c := range s.program.Calls {
		condition := ""
		if len(c.If) > 0 {
			condition = fmt.Sprintf("if (%s) ", s.holds(c.If))
		}
		args, prepared := s.call(k, c.Task)
		b.WriteString(s.loopsBefore(k))
		fmt.Fprintf(&b, "  %s{ /* %s */\n    void *const args[] = {%s};\n    void *const prepared[] = {%s};\n    %s.run(rt, args, prepared, arena + %d);\n  }\n",
			condition, comment(c.Name), pointers(args), pointers(prepared), s.symbol(c.Task), s.workspace[k])
		b.WriteString(s.loopsAfter(k))
	}
	return b.String()
}

// inputChecks returns the checks of the inputs that index axes. The extents are fixed.
func (s *source) inputChecks() string {
	var b strings.Builder
	for _, c := range s.program.Checks {
		v := s.program.Inputs[c.Input]
		value := s.program.Values[v]
		above := fmt.Sprintf("*in > -%d && ", c.Extent.Plus+1)
		if strings.HasPrefix(cTypes[value.DType], "u") {
			above = ""
		}
		at := fmt.Sprint(c.First.Plus)
		for k, a := range c.Axes {
			fmt.Fprintf(&b, "  for (int64_t i%d = 0; i%[1]d < %d; i%[1]d++)\n", k, a.Count.Plus)
			at += fmt.Sprintf(" + i%d * %d", k, a.Stride)
		}
		fmt.Fprintf(&b, "  {\n    const %s *const in = %s_input_%d() + %s;\n    if (!(%s*in < %d)) return %d;\n  }\n",
			cTypes[value.DType], s.prefix, c.Input, at, above, c.Extent.Plus, c.Input+1)
	}
	return b.String()
}

// requirements returns the checks of the results that must be true.
func (s *source) requirements() string {
	var b strings.Builder
	for _, r := range s.program.Required {
		fmt.Fprintf(&b, "  if (!*(const uint8_t *)(%s)) return -1; /* %s */\n", s.value(r.Value), comment(r.Why))
	}
	return b.String()
}

// comment escapes a text for a C comment.
func comment(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return strings.NewReplacer("*/", "*?", "/*", "/?", "??/", "???").Replace(clean)
}

// weightsSource writes the constants as C strings, which compilers read with a tenth of the memory and time of
// lists of numbers.
func (s *source) weightsSource(out io.Writer) error {
	upper := strings.ToUpper(s.prefix)
	_, err := fmt.Fprintf(out, `#include "%[1]s.h"

#ifndef %[2]s_WEIGHTS_ATTRIBUTES
#define %[2]s_WEIGHTS_ATTRIBUTES
#endif
const uint8_t %[1]s_weights[%[2]s_WEIGHTS_BYTES + 1] __attribute__((aligned(64))) %[2]s_WEIGHTS_ATTRIBUTES =
`, s.prefix, upper)
	if err != nil {
		return err
	}
	t := &cString{out: out}
	if err := s.writeWeights(t); err != nil {
		return err
	}
	return t.end()
}

// cString writes bytes as C strings, one line per 64 bytes.
type cString struct {
	out  io.Writer
	line []byte
	all  int
}

const lineBytes = 64

// Write implements io.Writer.
func (t *cString) Write(p []byte) (int, error) {
	for k, c := range p {
		t.line = append(t.line, c)
		if len(t.line) == lineBytes {
			if err := t.flush(); err != nil {
				return k, err
			}
		}
	}
	return len(p), nil
}

func (t *cString) flush() error {
	line := append(make([]byte, 0, 4*lineBytes+3), '"')
	for k, c := range t.line {
		followed := k+1 < len(t.line) && t.line[k+1] >= '0' && t.line[k+1] <= '7'
		line = appendByte(line, c, followed)
	}
	t.all += len(t.line)
	t.line = t.line[:0]
	_, err := t.out.Write(append(line, '"', '\n'))
	return err
}

// appendByte appends a character of a string: in octal unless it is plain, with all digits if a digit follows.
func appendByte(line []byte, c byte, followed bool) []byte {
	switch {
	case c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?':
		return append(line, c)
	case followed:
		return fmt.Appendf(line, "\\%03o", c)
	}
	return fmt.Appendf(line, "\\%o", c)
}

// end writes the rest, and at least one string.
func (t *cString) end() error {
	if len(t.line) > 0 || t.all == 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(t.out, ";\n")
	return err
}
