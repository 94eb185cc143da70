// Package compose runs a Compose project with containers of package container. It rejects everything that it
// does not support.
package compose

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tilth-dev/tilth/lab/deploy/container"
	"github.com/tilth-dev/tilth/lab/deploy/image"
)

// understood returns an error if a service has unsupported settings.
func understood(s types.ServiceConfig) error {
	s.Name, s.Image, s.Build, s.Hostname, s.User, s.ReadOnly = "", "", nil, "", "", false
	s.Entrypoint, s.Command, s.Environment = nil, nil, nil
	s.CapAdd, s.CapDrop, s.SecurityOpt = nil, nil, nil
	s.Volumes, s.Tmpfs, s.Networks, s.NetworkMode, s.Ports = nil, nil, nil, "", nil
	s.DependsOn, s.HealthCheck, s.StopGracePeriod, s.Scale = nil, nil, nil, nil
	if s.Deploy != nil && s.Deploy.Replicas != nil {
		only := types.DeployConfig{Replicas: s.Deploy.Replicas}
		if reflect.DeepEqual(*s.Deploy, only) {
			s.Deploy = nil
		}
	}
	// Nothing is started again, since nothing should end; logs are the test's.
	s.Restart, s.Logging = "", nil
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		f := v.Field(i)
		empty := f.IsZero() || (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0
		if !empty {
			return fmt.Errorf("%s is not understood", v.Type().Field(i).Name)
		}
	}
	return nil
}

// spec is the container of a service, but for its network.
func (f *Farm) spec(s types.ServiceConfig, from container.Image, name string) (container.Spec, error) {
	if err := understood(s); err != nil {
		return container.Spec{}, fmt.Errorf("service %s: %w", s.Name, err)
	}
	owner := from.Config.User
	if s.User != "" {
		owner = s.User
	}
	user, err := image.ParseUser(owner)
	if err != nil {
		return container.Spec{}, fmt.Errorf("service %s: %w", s.Name, err)
	}
	c := container.Spec{
		Name: name, Hostname: s.Hostname, Image: from, Args: commandLine(s, from), User: user.UID, Group: user.GID,
		Capabilities: capabilities(s), NewPrivileges: !slices.Contains(s.SecurityOpt,
			"no-new-privileges:true"), ReadOnly: s.ReadOnly,
	}
	if c.Hostname == "" {
		c.Hostname = name
	}
	for key, value := range s.Environment {
		if value != nil {
			c.Env = append(c.Env, key+"="+*value)
		}
	}
	slices.Sort(c.Env)
	for _, line := range s.Tmpfs {
		c.Mounts = append(c.Mounts, tmpfs(line))
	}
	for _, v := range s.Volumes {
		switch v.Type {
		case types.VolumeTypeBind:
			c.Mounts = append(c.Mounts, container.Bind(v.Source, v.Target, v.ReadOnly))
		case types.VolumeTypeVolume:
			c.Volumes = append(c.Volumes, container.Volume{Name: f.Project.Volumes[v.Source].Name,
				Destination: v.Target, ReadOnly: v.ReadOnly})
		default:
			return c, fmt.Errorf("service %s: a mount of the type %s is not understood", s.Name, v.Type)
		}
	}
	return c, nil
}

// commandLine returns the command of the service, or else of the image.
func commandLine(s types.ServiceConfig, from container.Image) []string {
	entrypoint, command := s.Entrypoint, s.Command
	if entrypoint == nil {
		entrypoint = from.Config.Entrypoint
		if command == nil {
			command = from.Config.Cmd
		}
	}
	return slices.Concat([]string(entrypoint), []string(command))
}

func capabilities(s types.ServiceConfig) (list []string) {
	if !slices.Contains(s.CapDrop, "ALL") {
		list = slices.DeleteFunc(slices.Clone(container.DefaultCapabilities), func(c string) bool {
			return slices.Contains(s.CapDrop, strings.TrimPrefix(c, "CAP_"))
		})
	}
	for _, added := range s.CapAdd {
		list = append(list, "CAP_"+added)
	}
	return list
}

// tmpfs parses PATH or PATH:OPTIONS; by default programs and devices are forbidden there.
func tmpfs(line string) specs.Mount {
	path, options, _ := strings.Cut(line, ":")
	m := specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: filepath.Clean(path),
		Options: []string{"noexec", "nosuid", "nodev"}}
	if options == "" {
		return m
	}
	for option := range strings.SplitSeq(options, ",") {
		m.Options = slices.DeleteFunc(m.Options, func(said string) bool { return said == "no"+option })
		m.Options = append(m.Options, option)
	}
	return m
}
