package modulefile

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// unit implements backend.Unit: kernels for the device, and host functions that launch them.
type unit struct {
	target  *target.Target
	code    Code
	helpers cprint.Declarations
	// kernels holds the code for the device, host that for the processor.
	kernels, host strings.Builder
	// own holds the files to compile beside the unit.
	own []toolchain.File
}

// NewUnit returns an empty translation unit of a package for a device whose runtime includes launch.h.
func NewUnit(t *target.Target, code Code) backend.Unit { return &unit{target: t, code: code} }

// Add implements backend.Unit.
func (u *unit) Add(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	if s.Own != nil {
		return u.addWritten(symbol, id, s)
	}
	p, err := Print(symbol, backend.Kernel{ID: id, Schedule: s}, u.target)
	if err != nil {
		return backend.Info{}, err
	}
	u.helpers.Include(&p.helpers)
	var run strings.Builder
	for _, k := range p.kernels {
		u.kernels.WriteString(k.Text)
		fmt.Fprintf(&u.host, "%sstatic struct tilth_device_kernel %[2]s = {&unit_code, \"%[2]s\", %d, %d, %d, {0}%s};\n", maps(k), k.Name, k.Blocks, k.Threads,
			k.SharedBytes, named(k))
		fmt.Fprintf(&run, "  { void *const pointers[] = {%s};\n    tilth_device_launch(rt, &%s, pointers, %d); }\n", pointers(k), k.Name, len(k.Parameters()))
	}
	fmt.Fprintf(&u.host, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n%s}\n", symbol, run.String())
	u.describe(symbol, id, p.workspaceBytes, p.growth)
	return backend.Info{WorkspaceBytes: p.workspaceBytes}, nil
}

// describe prints the description of a kernel.
func (u *unit) describe(symbol, id string, workspaceBytes int64, growth float64) {
	fmt.Fprintf(&u.host, "__attribute__((visibility(\"hidden\"))) const struct tilth_kernel %[1]s = {\"%[2]s\", 0, 0, %[1]s_run, %[3]d, 0, %[4]g};\n", symbol, id, workspaceBytes, growth)
}

// pointers returns the pointers of a launch as C expressions.
func pointers(k codegen.Kernel) string {
	text := ""
	for _, p := range k.Parameters() {
		if p.Arg < 0 {
			text += fmt.Sprintf("(char *)workspace + %d, ", p.OffsetBytes)
		} else {
			text += fmt.Sprintf("args[%d], ", p.Arg)
		}
	}
	return text + "0"
}

// maps returns the boxes of a launch's tensor maps in C, if it has any. They are its last parameters.
func maps(k codegen.Kernel) string {
	text := ""
	for _, p := range k.Parameters() {
		if p.Map == nil {
			continue
		}
		var extents, strides, box []string
		for _, d := range p.Map.Dims {
			extents = append(extents, fmt.Sprint(d.Extent))
			strides = append(strides, fmt.Sprint(d.Stride*p.Type.Bytes()))
			box = append(box, fmt.Sprint(d.Box))
		}
		text += fmt.Sprintf("  {%d, %d, %d, {%s}, {%s}, {%s}},\n", cruntime.Type(p.Type), p.Map.PanelBytes, len(p.Map.Dims), strings.Join(extents, ", "),
			strings.Join(strides, ", "), strings.Join(box, ", "))
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("static const struct tilth_boxes %s_boxes[] = {\n%s};\n", k.Name, text)
}

// named returns the name and the number of those boxes.
func named(k codegen.Kernel) string {
	n := 0
	for _, p := range k.Parameters() {
		if p.Map != nil {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s_boxes, %d", k.Name, n)
}

// device returns the build of the unit's code.
func (u *unit) device() toolchain.Build {
	return u.code(u.helpers.Text()+u.kernels.String(), u.target)
}

// symbol returns the unique symbol of the unit's code.
func (u *unit) symbol() string {
	b := u.device()
	sum := sha256.Sum256([]byte(strings.Join(b.Flags, " ") + b.Sources[0].Text))
	return "code_" + hex.EncodeToString(sum[:8])
}

// Source implements backend.Unit.
func (u *unit) Source() string {
	const include = "#include \"launch.h\"\n"
	if u.kernels.Len() == 0 { // all kernels are user-written, possibly in other units, too
		return include + u.host.String()
	}
	return include + fmt.Sprintf(`__asm__(".pushsection .rodata\n.balign 16\n.hidden %[1]s\n.globl %[1]s\n%[1]s:\n.incbin \"%[1]s\"\n.popsection\n");
extern const char %[1]s[];
static struct tilth_device_code unit_code = {%[1]s, {0}};
%[2]s`, u.symbol(), u.host.String())
}

// Own implements backend.Unit.
func (u *unit) Own() []toolchain.File { return u.own }

// Embedded implements backend.Unit.
func (u *unit) Embedded() []toolchain.Embedded {
	if u.kernels.Len() == 0 {
		return nil
	}
	b := u.device()
	b.Join = embedded
	return []toolchain.Embedded{{Name: u.symbol(), Build: b}}
}

// aligned is the alignment of the parts of embedded code in bytes.
const aligned = 16

// embedded assembles what launch.h reads: the lengths of the parts, the zero-terminated code, and its assembled form.
func embedded(code, assembled []byte) []byte {
	text := append(slices.Clip(code), make([]byte, aligned-len(code)%aligned)...)
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), uint64(len(assembled)))
	return slices.Concat(head, text, assembled)
}

//go:embed src devicecode tensormap card
var files embed.FS

// Sources returns the reader of candidate files, for a harness.
func Sources() []toolchain.File { return append(Files(files, "src"), Maps()...) }

// Maps returns the header that describes TMA copies of a tensor, from which drivers encode tensor maps.
func Maps() []toolchain.File { return Files(files, "tensormap") }

// Card returns the header for user-written GPU kernels.
func Card() []toolchain.File { return Files(files, "card") }

// DeviceCode returns the header that defines how a package embeds device code. launch.h includes it.
func DeviceCode() []toolchain.File { return Files(files, "devicecode") }

// Files returns the files of an embedded folder.
func Files(from embed.FS, folder string) (list []toolchain.File) {
	entries, err := from.ReadDir(folder)
	if err != nil {
		panic(err) // unreachable: the files are embedded
	}
	for _, entry := range entries {
		text, err := from.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic(err) // unreachable: the files are embedded
		}
		list = append(list, toolchain.File{Name: entry.Name(), Text: string(text)})
	}
	return list
}
