package kube

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// start starts the pod's container as its node would.
func (c *Cluster) start(p *Pod) error {
	if err := understood(p.template); err != nil {
		return err
	}
	said := p.template.Containers[0]
	from, there := c.Images[said.Image]
	if !there {
		return fmt.Errorf("there is no image %s", said.Image)
	}
	mounts, err := c.mounts(p)
	if err != nil {
		return err
	}
	env, args := environment(p, said)
	security := p.template.SecurityContext
	spec := container.Spec{
		Name: p.Name, Hostname: p.Name, Image: from, Args: append(slices.Clone(from.Config.Entrypoint), args...), Env: env,
		User: uint32(*security.RunAsUser), Group: uint32(*security.RunAsGroup), Groups: []uint32{uint32(*security.FSGroup)},
		Capabilities: capabilities(said.SecurityContext), NewPrivileges: *said.SecurityContext.AllowPrivilegeEscalation,
		ReadOnly: *said.SecurityContext.ReadOnlyRootFilesystem, Mounts: mounts,
		MemoryBytes: said.Resources.Limits.Memory().Value(),
		Network:     p.Net, NameServer: c.dns.Addr, Search: []string{p.Namespace + ".svc.cluster.local",
			"svc.cluster.local", "cluster.local"},
	}
	if security.RunAsNonRoot != nil && *security.RunAsNonRoot && spec.User == 0 {
		return fmt.Errorf("it must not run as root")
	}
	p.Container, err = c.Machine.Start(spec)
	return err
}

// understood returns an error if a pod has unsupported settings.
func understood(pod corev1.PodSpec) error {
	if len(pod.Containers) != 1 {
		return fmt.Errorf("%d containers of a pod are not understood", len(pod.Containers))
	}
	c := pod.Containers[0]
	c.Name, c.Image, c.Args, c.Env, c.Ports, c.VolumeMounts, c.SecurityContext = "", "", nil, nil, nil, nil, nil
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
	// There is one node, which has room.
	c.Resources = corev1.ResourceRequirements{}
	pod.NodeSelector, pod.Tolerations = nil, nil
	pod.Containers, pod.Volumes, pod.SecurityContext, pod.TerminationGracePeriodSeconds = nil, nil, nil, nil
	// There is no API that a token would be for.
	pod.AutomountServiceAccountToken = nil
	for _, v := range []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(pod)} {
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				return fmt.Errorf("%s is not understood", v.Type().Field(i).Name)
			}
		}
	}
	return nil
}

var reference = regexp.MustCompile(`\$\((\w+)\)`)

// environment is a container's variables, and its arguments with their values.
func environment(p *Pod, c corev1.Container) (env, args []string) {
	fields := map[string]string{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": nodeName}
	values := map[string]string{}
	for _, v := range c.Env {
		values[v.Name] = v.Value
		if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
			values[v.Name] = fields[v.ValueFrom.FieldRef.FieldPath]
		}
		env = append(env, v.Name+"="+values[v.Name])
	}
	for _, arg := range c.Args {
		args = append(args, reference.ReplaceAllStringFunc(arg, func(name string) string {
			if value, known := values[name[2:len(name)-1]]; known {
				return value
			}
			return name
		}))
	}
	return env, args
}

func capabilities(s *corev1.SecurityContext) []string {
	list := slices.Clone(container.DefaultCapabilities)
	if s.Capabilities == nil {
		return list
	}
	for _, dropped := range s.Capabilities.Drop {
		list = slices.DeleteFunc(list, func(c string) bool { return dropped == "ALL" || c == "CAP_"+string(dropped) })
	}
	for _, added := range s.Capabilities.Add {
		list = append(list, "CAP_"+strings.ToUpper(string(added)))
	}
	return list
}

// mounts are the volumes where the container has them.
func (c *Cluster) mounts(p *Pod) (mounts []specs.Mount, err error) {
	folders, err := c.volumes(p)
	if err != nil {
		return nil, err
	}
	for _, m := range p.template.Containers[0].VolumeMounts {
		folder, there := folders[m.Name]
		if !there || m.SubPath != "" {
			return nil, fmt.Errorf("the mount of %s at %s is not understood", m.Name, m.MountPath)
		}
		mounts = append(mounts, container.Bind(folder, m.MountPath, m.ReadOnly))
	}
	return mounts, nil
}
