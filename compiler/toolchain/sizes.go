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

// Sizes is the memory footprint of a program, in bytes.
type Sizes struct {
	// Code is read-only, Data is writable, and Stack is an estimate.
	Code, Data, Stack int64
	// Needs lists the undefined functions and variables, except those of the compiler's own library, sorted.
	Needs []string
}

// SourceLevel is the optimisation level of kernels exported as source.
const SourceLevel = 2

// SourceFlags returns the compiler flags for exported source on a target, with additional ones.
func SourceFlags(t *target.Target, more []string) []string {
	flags := []string{"-O" + strconv.Itoa(SourceLevel), "-std=gnu11", contract, "-fno-math-errno", "-fno-trapping-math", "-fwrapv"}
	if !t.HasOperatingSystem() {
		flags = append(flags, bareFlags...)
	}
	return append(flags, more...)
}

// Measure compiles sources in a directory, drops code unreachable from entry, and measures the rest. The build's
// form does not matter, and undefined symbols are not errors.
func (tc *Toolchain) Measure(ctx context.Context, b Build, entry, dir string) (s Sizes, err error) {
	b.Form, b.Flags = Kernels, append([]string{"-fno-pic", "-ffunction-sections", "-fdata-sections", "-fstack-usage"}, b.Flags...)
	if err := writeFiles(dir, slices.Concat(b.Headers, b.Sources)); err != nil {
		return s, err
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

// linkLoose links the code reachable from an entry, and allows undefined symbols.
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

// sectionSizes returns the read-only and the writable bytes of a program; initial values of writable data count as
// both.
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

// frame matches a line of a compiler's stack usage report: PLACE:FUNCTION, bytes, and kind.
var frame = regexp.MustCompile(`([^:\s]+)\t(\d+)\t`)

// stackUse estimates the stack of the deepest calls: the sum of the largest frames of kernel entry points, of
// functions that run their loops, and of all others.
func stackUse(dir string, sources []File) (int64, error) {
	var largest [3]int64
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
			largest[kind] = max(largest[kind], bytes)
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return outermost + largest[0] + largest[1] + largest[2], nil
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

// missing returns the symbols that none of the objects defines.
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
