package fakedriver

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

//go:embed src
var sources embed.FS

// file returns one of the sources.
func file(name string) toolchain.File {
	text, err := sources.ReadFile("src/" + name)
	if err != nil {
		panic(err) // unreachable: the file is embedded
	}
	return toolchain.File{Name: name, Text: string(text)}
}

// Driver is a fake driver in a folder of its own.
type Driver struct {
	tc     *toolchain.Toolchain
	target *target.Target
	dir    string
	// objects caches the compiled kernels and is shared with copies.
	objects *toolchain.Objects
}

// Make builds the library for a target's host in an empty folder.
func Make(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string) (*Driver, error) {
	objects, err := toolchaintest.Objects()
	if err != nil {
		return nil, err
	}
	d := &Driver{tc, t, dir, objects}
	err = tc.Build(ctx, toolchain.Build{
		Target: t, Form: toolchain.Library, Objects: objects, Sources: []toolchain.File{file("fake.c")},
		Headers: append(cuda.DriverSources(), file("setting.h"), toolchain.File{Name: cruntime.HeaderName, Text: cruntime.Header},
			toolchain.File{Name: "sim_maps.h", Text: macros.SimulatedMaps()}),
	}, d.Library())
	return d, err
}

// MakeHealth builds a management library beside the driver and returns its path.
func (d *Driver) MakeHealth(ctx context.Context) (string, error) {
	path := filepath.Join(d.dir, "libnvidia-ml.so.1")
	return path, d.tc.Build(ctx, toolchain.Build{
		Target: d.target, Form: toolchain.Library, Objects: d.objects, Sources: []toolchain.File{file("nvml_fake.c")},
		Headers: []toolchain.File{file("setting.h")},
	}, path)
}

// Copy returns a copy of the driver, without settings, in another empty folder.
func (d *Driver) Copy(dir string) (*Driver, error) {
	library, err := os.ReadFile(d.Library())
	if err != nil {
		return nil, err
	}
	other := &Driver{d.tc, d.target, dir, d.objects}
	return other, os.WriteFile(other.Library(), library, 0o700) // a shared library
}

// PlayAlso makes the driver execute the kernels of another driver, too.
func (d *Driver) PlayAlso(other *Driver) error {
	players, err := filepath.Glob(filepath.Join(other.dir, "*.so"))
	for _, player := range players {
		err = errors.Join(err, os.Link(player, filepath.Join(d.dir, filepath.Base(player))))
	}
	return err
}

// Library returns the path of the library.
func (d *Driver) Library() string { return filepath.Join(d.dir, "libcuda.so.1") }

// ID returns the UUID of a GPU of the driver.
func ID(card int) string { return fmt.Sprintf("GPU-fa4e00%02x-0000-4000-8000-000000000000", card) }

// SliceID returns the UUID of a MIG device of the first GPU.
func SliceID(slice int) string {
	return fmt.Sprintf("MIG-fa4e0000-0000-4000-8000-0000000000%02x", slice+1)
}

// Tell sets a number that src/fake.c defines, such as the launch from which on all launches fail.
func (d *Driver) Tell(what string, number int) error {
	return os.WriteFile(filepath.Join(d.dir, what), []byte(strconv.Itoa(number)), 0o600)
}

// Begun returns how many processes have initialised the driver.
func (d *Driver) Begun() (int, error) {
	all, err := os.ReadFile(filepath.Join(d.dir, "begun"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return len(all), err
}

// Forget clears a number.
func (d *Driver) Forget(what string) error { return os.Remove(filepath.Join(d.dir, what)) }

// Play builds device code and makes the driver execute it. The driver executes the text of the kernels, compiled in
// the dialect of the simulated GPU.
func (d *Driver) Play(ctx context.Context, b toolchain.Build) error {
	path := filepath.Join(d.dir, "made")
	b.Join = nil // its PTX identifies it
	if err := d.tc.Build(ctx, b, path); err != nil {
		return err
	}
	made, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, isKernels := strings.CutPrefix(b.Sources[0].Text, macros.NVPTX())
	if !isKernels {
		return errors.New("the build has no kernels for a GPU")
	}
	h := fnv.New64a()
	h.Write(made)
	return d.tc.Build(ctx, toolchain.Build{
		Target: d.target, Form: toolchain.Library, Level: toolchain.KernelLevel, Objects: d.objects,
		Sources: []toolchain.File{{Name: "player.c", Text: cruntime.Header + macros.Simulated() + text + players(text)}},
	}, filepath.Join(d.dir, fmt.Sprintf("%016x.so", h.Sum64())))
}

var (
	kernel    = regexp.MustCompile(`(?m)^TILTH_KERNEL\((\w+), (\d+)\)\((.*)\) \{$`)
	parameter = regexp.MustCompile(`GLOBAL (const )?(\w+) \*restrict (\w+)`)
	array     = regexp.MustCompile(`GLOBAL_ARRAY\((\w+), (\d+)\);`)
	tensorMap = regexp.MustCompile(`TENSOR_MAP \w+`)
)

// players returns functions that execute launches of the kernels in a text, NAME_play, and the numbers of their
// trailing tensor map parameters, NAME_maps.
func players(text string) string {
	var b strings.Builder
	for _, at := range kernel.FindAllStringSubmatchIndex(text, -1) {
		name, threads, parameters := text[at[2]:at[3]], text[at[4]:at[5]], text[at[6]:at[7]]
		elements := map[string]string{}
		body, _, _ := strings.Cut(text[at[1]:], "\n}\n")
		for _, a := range array.FindAllStringSubmatch(body, -1) {
			elements[a[1]] = a[2]
		}
		var outputs []string
		values := ""
		pointers, maps := parameter.FindAllStringSubmatch(parameters, -1), tensorMap.FindAllString(parameters, -1)
		for k, p := range pointers {
			values += fmt.Sprintf(", ((void *const *)of)[%d]", k)
			if p[1] == "" {
				outputs = append(outputs, fmt.Sprintf("{parameters[%d], %s}", k, elements[p[3]]))
			}
		}
		for k := range maps {
			values += fmt.Sprintf(", *((const struct sim_map *const *)of)[%d]", len(pointers)+k)
		}
		fmt.Fprintf(&b, `const int %[1]s_maps = %[6]d;
static void %[1]s_thread(struct sim_thread *sim, void *of) { %[1]s(sim%[2]s); }
void %[1]s_play(const struct tilth_runtime *rt, void *const *parameters, int64_t blocks) {
  const struct sim_output outputs[] = {%[3]s};
  struct sim_launch launch = {"%[1]s", %[1]s_thread, (void *)parameters, %[4]s, outputs, %[5]d, 0};
  sim_run_launch(rt, &launch, blocks);
}
`, name, values, strings.Join(outputs, ", "), threads, len(outputs), len(maps))
	}
	return b.String()
}
