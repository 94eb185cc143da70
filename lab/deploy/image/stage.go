package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// stage is a stage that is being built.
type stage struct {
	*Builder
	name  string
	image container.Image
	// root is the stage's root folder; writes go to the last layer.
	root string
	// args lists the variables of RUN outside the image's environment.
	args []string
	runs int
}

func (s *stage) layer() string { return s.root + ".layer" + strconv.Itoa(len(s.image.Layers)) }

func (s *stage) mount() error { return container.MountLayers(s.image.Layers, s.layer(), s.root) }

// seal turns the written files into the image's last layer.
func (s *stage) seal() error {
	if err := unix.Unmount(s.root, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", s.root, err)
	}
	s.image.Layers = append(slices.Clone(s.image.Layers), s.layer())
	return nil
}

// do does one instruction. One that the Dockerfile does not use today is an error, not a guess.
func (s *stage) do(ctx context.Context, command instructions.Command) error {
	config := &s.image.Config
	switch c := command.(type) {
	case *instructions.CopyCommand:
		return s.copy(ctx, c)
	case *instructions.RunCommand:
		return s.run(ctx, c)
	case *instructions.WorkdirCommand:
		config.WorkingDir = filepath.Join("/", config.WorkingDir, c.Path)
		return os.MkdirAll(filepath.Join(s.root, config.WorkingDir), 0o755)
	case *instructions.ArgCommand:
		for _, arg := range c.Args {
			s.args = append(s.args, arg.Key+"="+s.argument(arg))
		}
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			config.Env = append(slices.Clone(config.Env), pair.Key+"="+pair.Value)
		}
	case *instructions.UserCommand:
		config.User = c.User
	case *instructions.EntrypointCommand:
		if c.PrependShell {
			return fmt.Errorf("a shell would be the first process, and be sent the signals")
		}
		config.Entrypoint, config.Cmd = c.CmdLine, nil
	default:
		return fmt.Errorf("the instruction %s is not understood", command.Name())
	}
	return nil
}

func (s *stage) argument(arg instructions.KeyValuePairOptional) string {
	if value, given := s.Args[arg.Key]; given {
		return value
	}
	return arg.ValueString()
}

// run runs a command of the image's shell as root. Packages that it installs are taken from this machine.
func (s *stage) run(ctx context.Context, c *instructions.RunCommand) error {
	if !c.PrependShell || len(c.Files) > 0 || len(c.FlagsUsed) > 0 {
		return fmt.Errorf("only plain commands are understood")
	}
	line := strings.Join(c.CmdLine, " ")
	if packages, installs := installed(line); installs {
		return s.install(ctx, packages)
	}
	user, err := ParseUser(s.image.Config.User)
	if err != nil {
		return err
	}
	if err := s.seal(); err != nil {
		return err
	}
	s.runs++
	spec := container.Spec{
		Name: fmt.Sprintf("build-%s-%d", s.name, s.runs), Hostname: "build", Image: s.image,
		Args: []string{"/bin/sh", "-c", line},
		Env:  slices.Concat(s.args, buildEnv()), User: user.UID, Group: user.GID, Capabilities: container.DefaultCapabilities,
		NewPrivileges: true, Mounts: buildMounts(),
	}
	running, err := s.Machine.Start(spec)
	if err == nil {
		err = errors.Join(running.Wait(ctx), running.Remove())
	}
	if err != nil {
		return err
	}
	// What it wrote is a layer.
	s.image.Layers = append(slices.Clone(s.image.Layers), running.Written())
	return s.mount()
}

// install adds what Debian's packages bring.
func (s *stage) install(ctx context.Context, packages []string) error {
	if err := s.seal(); err != nil {
		return err
	}
	layer := s.layer()
	if err := layPackages(ctx, layer, packages, true); err != nil {
		return err
	}
	s.image.Layers = append(slices.Clone(s.image.Layers), layer)
	return s.mount()
}
