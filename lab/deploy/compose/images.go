package compose

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/container"
	"github.com/tilth-dev/tilth/lab/deploy/image"
)

// Images are the images of services, each made once.
type Images struct {
	// Machine has their files, and runs the commands of their builds.
	Machine *container.Machine

	mu       sync.Mutex
	builders map[string]*image.Builder
	made     map[string]container.Image
}

// NewImages returns none yet.
func NewImages(machine *container.Machine) *Images {
	return &Images{Machine: machine, builders: map[string]*image.Builder{}, made: map[string]container.Image{}}
}

// Of builds what the service is built of, or makes what would be pulled.
func (m *Images) Of(ctx context.Context, s types.ServiceConfig) (container.Image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from, made := m.made[s.Image]; made {
		return from, nil
	}
	from, err := m.make(ctx, s)
	if err != nil {
		return from, fmt.Errorf("image %s: %w", s.Image, err)
	}
	m.made[s.Image] = from
	return from, nil
}

func (m *Images) make(ctx context.Context, s types.ServiceConfig) (container.Image, error) {
	if s.Build == nil {
		return image.Base(ctx, s.Image, filepath.Join(m.Machine.Dir, "images",
			strings.NewReplacer("/", "-", ":", "-").Replace(s.Image)))
	}
	b, err := m.builder(s.Build)
	if err != nil {
		return container.Image{}, err
	}
	return b.Build(ctx, s.Build.Target)
}

// builder is one for all services that are built of the same.
func (m *Images) builder(build *types.BuildConfig) (*image.Builder, error) {
	args := map[string]string{}
	for name, value := range build.Args {
		if value != nil {
			args[name] = *value
		}
	}
	key := fmt.Sprint(build.Context, build.Dockerfile, args)
	if b := m.builders[key]; b != nil {
		return b, nil
	}
	b := &image.Builder{Machine: m.Machine, Context: build.Context, Args: args}
	m.builders[key] = b
	return b, b.Read(filepath.Join(build.Context, build.Dockerfile))
}
