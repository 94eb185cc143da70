package container

import (
	"fmt"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// What engines hide in /proc and /sys, and what they let be read only.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// DefaultCapabilities lists Docker's default capabilities of root.
var DefaultCapabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// baseMounts are those of every container.
func baseMounts() []specs.Mount {
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs",
			Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{
			Destination: "/dev/pts", Type: "devpts", Source: "devpts",
			Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"},
		},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm",
			Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup",
			Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"}},
	}
}

// runtimeSpec returns the configuration for runc, with Docker's seccomp filter.
func (s *Spec) runtimeSpec(root, cgroup string) (*specs.Spec, error) {
	capabilities := &specs.LinuxCapabilities{Bounding: s.Capabilities}
	if s.User == 0 {
		capabilities.Effective, capabilities.Permitted = s.Capabilities, s.Capabilities
	}
	spec := &specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{
			User: specs.User{UID: s.User, GID: s.Group, AdditionalGids: s.Groups},
			Args: s.Args, Env: s.environment(), Cwd: s.Dir,
			Capabilities: capabilities, NoNewPrivileges: !s.NewPrivileges,
		},
		Root:     &specs.Root{Path: root, Readonly: s.ReadOnly},
		Hostname: s.Hostname,
		Mounts:   append(baseMounts(), byDepth(s.Mounts)...),
		Linux: &specs.Linux{
			CgroupsPath: cgroup, MaskedPaths: maskedPaths, ReadonlyPaths: readOnlyPaths,
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}}},
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.MountNamespace}, {Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
			},
		},
	}
	if s.Network != nil {
		network := specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: s.Network.Path()}
		spec.Linux.Namespaces = append(spec.Linux.Namespaces, network)
	}
	if s.MemoryBytes > 0 {
		spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &s.MemoryBytes}
	}
	var err error
	if spec.Linux.Seccomp, err = seccomp.GetDefaultProfile(spec); err != nil {
		return nil, fmt.Errorf("filter of system calls: %w", err)
	}
	return spec, nil
}

// environment returns the image's environment with the container's changes.
func (s *Spec) environment() []string {
	return mergeEnv(mergeEnv([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		s.Image.Config.Env), s.Env)
}

// mergeEnv returns variables of both; those of more win.
func mergeEnv(env, more []string) []string {
	merged := append([]string(nil), env...)
	for _, pair := range more {
		name, _, _ := strings.Cut(pair, "=")
		at := len(merged)
		for i, old := range merged {
			if strings.HasPrefix(old, name+"=") {
				at = i
			}
		}
		merged = append(merged[:at], append([]string{pair}, merged[min(at+1, len(merged)):]...)...)
	}
	return merged
}
