package aot

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// cPrefix is the default prefix of the names in an archive of C source.
const cPrefix = "model"

// checkC returns an error if a program cannot be exported as C source.
func (c *compilation) checkC() error {
	o, p := c.options, c.program
	switch {
	case !o.Target.SupportsC():
		return errors.New("there is no C source of a package for a GPU: name another --target")
	case o.Target.Threads() != 1:
		return fmt.Errorf("source in C runs on one thread, not %d: compile it with --threads 1", o.Target.Threads())
	case len(p.Extents) > 0:
		return fmt.Errorf("%s cannot stay open in C source: fix it by --shape", p.Extents[0].Name)
	case len(p.Open) > 0:
		return fmt.Errorf("output %s has an extent that depends on data, which C source cannot have", p.Values[p.Outputs[p.Open[0].Output]].Name)
	case o.Check != nil:
		return errors.New("source in C cannot be checked before it is compiled: leave --check out")
	}
	return nil
}

// source is an archive of C source under construction.
type source struct {
	*compilation
	*layout
	program *program.Program
	prefix  string
	// kernels is the translation unit of all kernels.
	kernels string
	sizes   toolchain.Sizes
}

// writeC creates the archive, which appears under its name once it is completely on disk.
func (c *compilation) writeC(ctx context.Context, l *layout) (manifest *Manifest, err error) {
	s := &source{compilation: c, layout: l, program: c.program, prefix: c.cPrefix(), kernels: c.sources[0].Text}
	plan := s.plan() // first, since it requests all constants
	if s.sizes, err = s.measure(ctx, plan); err != nil {
		return nil, err
	}
	if err := s.limit(); err != nil {
		return nil, err
	}
	err = filesystem.WriteFile(c.options.Output, func(out io.Writer) error {
		w := &archiveWriter{tar: tar.NewWriter(out)}
		if err := s.write(w, plan); err != nil {
			return err
		}
		manifest = c.manifest(l)
		manifest.C = &CSource{
			Prefix: s.prefix, RAMBytes: s.ramBytes(), FlashBytes: s.flashBytes(), CodeBytes: s.sizes.Code, StackBytes: s.sizes.Stack, Needs: s.sizes.Needs,
		}
		return w.finish(manifest)
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return manifest, nil
}

func (c *compilation) cPrefix() string {
	return cmp.Or(c.options.Prefix, cPrefix)
}

// ramBytes is the memory of a run, flashBytes that of read-only data.
func (s *source) ramBytes() int64   { return s.arenaBytes + s.sizes.Data + s.sizes.Stack }
func (s *source) flashBytes() int64 { return s.weightsBytes + s.sizes.Code }

// write writes all members but the manifest.
func (s *source) write(w *archiveWriter, plan string) error {
	texts := []toolchain.File{
		{Name: "README.txt", Text: s.readme()}, {Name: s.prefix + ".h", Text: s.header()}, {Name: s.prefix + ".c", Text: plan},
		{Name: s.kernelsName(), Text: s.kernels},
	}
	texts = append(texts, s.support()...)
	for _, f := range texts {
		if err := w.addBytes(f.Name, []byte(f.Text)); err != nil {
			return err
		}
	}
	var size counter
	if err := s.weightsSource(&size); err != nil {
		return err
	}
	return w.add(s.prefix+"_weights.c", int64(size), s.weightsSource)
}

func (s *source) kernelsName() string { return s.prefix + "_kernels.c" }

// support returns the C library functions that freestanding programs need.
func (s *source) support() (list []toolchain.File) {
	if s.options.Target.HasOperatingSystem() {
		return nil
	}
	for _, f := range s.runtime.Sources {
		list = append(list, toolchain.File{Name: s.prefix + "_" + f.Name, Text: f.Text})
	}
	return list
}

// counter counts written bytes.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// measure compiles everything except the weights, whose size is known, and measures the result.
func (s *source) measure(ctx context.Context, plan string) (toolchain.Sizes, error) {
	b := toolchain.Build{Target: s.options.Target, Level: cLevel, Flags: cFlags, Parallel: s.options.Parallel, Limits: toolchain.Limits{Time: unitTime},
		Headers: []toolchain.File{{Name: s.prefix + ".h", Text: s.header()}},
		Sources: []toolchain.File{{Name: s.prefix + ".c", Text: plan}, {Name: s.kernelsName(), Text: s.kernels}}}
	b.Sources = append(b.Sources, s.support()...)
	dir, err := os.MkdirTemp("", "tilth-sizes-*")
	if err != nil {
		return toolchain.Sizes{}, err
	}
	defer os.RemoveAll(dir)
	// The arena, whose size is known, is external here, so that it does not count as data.
	b.Flags = append([]string{"-D" + strings.ToUpper(s.prefix) + "_OWN_ARENA"}, b.Flags...)
	sizes, err := s.options.Toolchain.Measure(ctx, b, s.prefix+"_run", dir)
	sizes.Needs = slices.DeleteFunc(sizes.Needs, func(name string) bool { return name == s.prefix+"_arena" || name == s.prefix+"_weights" })
	return sizes, err
}

// cLevel is the optimisation level of C source, and cFlags are its flags in addition to those of all code.
const cLevel = toolchain.SourceLevel

var cFlags = []string{"-fno-strict-aliasing"}
