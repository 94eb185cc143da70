package farm

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/compose"
	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// images are made once for all tests.
var images = sync.OnceValues(func() (*compose.Images, error) {
	machine, err := container.NewMachine("images")
	return compose.NewImages(machine), err
})

// project is docker-compose.yml.
func project(ctx context.Context, t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithName("tilth"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ourImages are the two that the Dockerfile builds, by name.
func ourImages(ctx context.Context, t *testing.T) map[string]container.Image {
	t.Helper()
	all, err := images()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]container.Image{}
	for _, s := range project(ctx, t).Services {
		if s.Build != nil {
			if made[s.Image], err = all.Of(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return made
}
