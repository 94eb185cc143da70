package toolchain

import (
	"bufio"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

// Sizes is what a program takes of a machine's memory, in bytes.
type Sizes struct {
	// Code is what is only read, Data what is written, Stack about what calls take.
	Code, Data, Stack int64
	// Needs are the functions and variables that it has not, but for those of the compiler's own library, sorted.
	Needs []string
}

// SourceLevel is the optimisation level of kernels that are handed out as source.
const SourceLevel = 2

// SourceFlags are flags of compilers' commands for such source, for a target, with further ones.
func SourceFlags(t *target.Target, more []string) []string {
	flags := []string{"-O" + strconv.Itoa(SourceLevel), "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"}
	if t.IsBare() {
		flags = append(flags, bareFlags...)
	}
	return append(flags, more...)
}

// Measure compiles sources in a folder, leaves out what entry does not call, and measures what is left. The build's
// form does not matter, and what it lacks is no error.
func (tc *Toolchain) Measure(ctx context.Context, b Build, entry, dir string) (s Sizes, err error) {
	b.Form, b.Flags = Kernels, append([]string{"-fno-pic", "-ffunction-sections", "-fdata-sections", "-fstack-usage"}, b.Flags...)
	for _, f := range append(slices.Clone(b.Headers), b.Sources...) {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			return s, &Error{Kind: Infra, Step: "writing " + f.Name, Message: err.Error(), Err: err}
		}
	}
	objects, err := tc.compileAll(ctx, b, dir)
	if err != nil {
		return s, err
	}
	if err := tc.linkLoose(ctx, b, dir, objects, entry); err != nil {
		return s, err
	}
	if s.Code, s.Data, err = sectionSizes(filepath.Join(dir, linked)); err != nil {
		return s, &Error{Kind: Infra, Step: "measuring", Message: err.Error(), Err: err}
	}
	if s.Stack, err = stackUse(dir, b.Sources); err != nil {
		return s, &Error{Kind: Infra, Step: "measuring", Message: err.Error(), Err: err}
	}
	s.Needs, err = missing(dir, objects)
	return s, err
}

// linkLoose links what an entry calls, and leaves open what is not there.
func (tc *Toolchain) linkLoose(ctx context.Context, b Build, dir string, objects []string, entry string) error {
	path, flags, err := tc.compiler(b.Target)
	if err != nil {
		return err
	}
	args := append(flags, objects...)
	args = append(args, "-o", linked, "-nostdlib", "-static", "-no-pie", "-Wl,--gc-sections,--build-id=none,-e,"+entry+",--unresolved-symbols=ignore-all")
	args = append(args, tc.driverFlags(b.Target)...)
	return b.Limits.run(ctx, "linking with "+tc.Name, program{dir: dir, path: path, args: args, box: tc.box})
}

// sectionSizes are the bytes of a program that are only read, and those that are written, whose first values are read
// as well.
func sectionSizes(path string) (code, data int64, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for _, s := range f.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC == 0:
		case s.Flags&elf.SHF_WRITE == 0:
			code += int64(s.Size)
		default:
			data += int64(s.Size)
			if s.Type != elf.SHT_NOBITS {
				code += int64(s.Size)
			}
		}
	}
	return code, data, nil
}

// frame is a line of what compilers tell of the stack: PLACE:FUNCTION, bytes, and how they are told.
var frame = regexp.MustCompile(`([^:\s]+)\t(\d+)\t`)

// stackUse is about what the deepest calls take: the largest frame of the functions that begin a kernel, of those that
// run its loops, and of all others, together.
func stackUse(dir string, sources []File) (int64, error) {
	var most [3]int64
	outermost := int64(0)
	for k, source := range sources {
		f, err := os.Open(filepath.Join(dir, strings.TrimSuffix(source.Name, ".c")+".su"))
		if err != nil {
			return 0, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			found := frame.FindStringSubmatch(lines.Text())
			if found == nil {
				continue
			}
			bytes, err := strconv.ParseInt(found[2], 10, 64)
			if err != nil {
				continue
			}
			if k == 0 { // the plan
				outermost += bytes
				continue
			}
			kind := frameKind(found[1])
			most[kind] = max(most[kind], bytes)
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return outermost + most[0] + most[1] + most[2], nil
}

func frameKind(function string) int {
	switch {
	case strings.HasSuffix(function, "_run"):
		return 0
	case strings.Contains(function, "_body"):
		return 1
	}
	return 2
}

// missing are what none of the objects has.
func missing(dir string, objects []string) ([]string, error) {
	have, want := map[string]bool{}, map[string]bool{}
	for _, name := range objects {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		symbols, err := f.Symbols()
		f.Close()
		if err != nil {
			return nil, err
		}
		for _, s := range symbols {
			switch {
			case s.Name == "" || strings.HasPrefix(s.Name, "__") || s.Name == "_GLOBAL_OFFSET_TABLE_":
			case s.Section == elf.SHN_UNDEF:
				want[s.Name] = true
			default:
				have[s.Name] = true
			}
		}
	}
	var list []string
	for name := range want {
		if !have[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}
