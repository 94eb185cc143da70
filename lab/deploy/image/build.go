// Package image builds the content of an image from its Dockerfile in folders, without an engine: it uses
// BuildKit's parser and copier, and runs commands in containers. Base images are assembled from this
// machine's files instead of a registry; see Base.
package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// Builder builds the stages of a Dockerfile.
type Builder struct {
	Machine *container.Machine
	// Context is the folder that COPY takes files from.
	Context string
	// Args are the values of ARG.
	Args map[string]string

	ignored []string
	stages  []instructions.Stage
	built   map[string]container.Image
}

// Read reads a Dockerfile and its ignore list.
func (b *Builder) Read(dockerfile string) error {
	f, err := os.Open(dockerfile)
	if err != nil {
		return err
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", dockerfile, err)
	}
	stages, global, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", dockerfile, err)
	}
	if len(global) > 0 {
		return fmt.Errorf("%s: arguments before the first stage are not understood", dockerfile)
	}
	b.stages, b.built = stages, map[string]container.Image{}
	b.ignored, err = readIgnored(dockerfile + ".dockerignore")
	return err
}

// Build returns the image of a stage. Those that it needs are built first, each once.
func (b *Builder) Build(ctx context.Context, name string) (container.Image, error) {
	if image, done := b.built[name]; done {
		return image, nil
	}
	i := slices.IndexFunc(b.stages, func(s instructions.Stage) bool { return s.Name == name })
	if i < 0 {
		return container.Image{}, fmt.Errorf("the Dockerfile has no stage %s", name)
	}
	image, err := b.buildStage(ctx, b.stages[i])
	if err != nil {
		return image, fmt.Errorf("stage %s: %w", name, err)
	}
	b.built[name] = image
	return image, nil
}

func (b *Builder) buildStage(ctx context.Context, from instructions.Stage) (container.Image, error) {
	base, err := Base(ctx, from.BaseName, filepath.Join(b.Machine.Dir, "images", from.Name+".base"))
	if err != nil {
		return base, err
	}
	s := &stage{Builder: b, name: from.Name, image: base, root: filepath.Join(b.Machine.Dir, "images", from.Name)}
	if err := s.mount(); err != nil {
		return base, err
	}
	for _, command := range from.Commands {
		if err := s.do(ctx, command); err != nil {
			return base, fmt.Errorf("%s: %w", strings.SplitN(fmt.Sprint(command), "\n", 2)[0], err)
		}
	}
	return s.image, s.seal()
}
