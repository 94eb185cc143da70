// Package container starts containers as an engine does, without an engine: their files are mounted layers, their
// networks are bridges and network namespaces with a name service, and runc, by which Docker and Kubernetes start
// containers too, makes of each specification a process with its user, capabilities, filter of system calls and
// mounts.
//
// Everything lives in namespaces of the test's own (see Main), so that nothing outlives it.
package container

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Image is the base of containers: layers of files, lowest first, and process defaults.
type Image struct {
	Layers []string
	Config imagespec.ImageConfig
}

// File is where a file of the image lies on the machine.
func (i Image) File(path string) (string, error) {
	for _, layer := range slices.Backward(i.Layers) {
		if at := filepath.Join(layer, path); exists(at) {
			return at, nil
		}
	}
	return "", fmt.Errorf("the image has no %s", path)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Spec describes a container. Compose services and pods are converted to it.
type Spec struct {
	// Name is unique on the machine.
	Name     string
	Hostname string
	Image    Image
	// Args is the whole command line, with the entry point.
	Args []string
	Env  []string
	Dir  string
	// User runs it, in Group and Groups.
	User, Group uint32
	Groups      []uint32
	// Capabilities are all it may ever have, such as CAP_CHOWN.
	Capabilities []string
	// NewPrivileges permits programs with the set-user-ID bit to give some.
	NewPrivileges bool
	// ReadOnly forbids writing to the image's files.
	ReadOnly bool
	// Mounts come after those that every container has, in the order of their destinations' depth.
	Mounts []specs.Mount
	// Volumes are mounted among them.
	Volumes []Volume
	// MemoryBytes bounds its memory; 0 is no bound.
	MemoryBytes int64
	// Network is the namespace that it is in; nil is the machine's own.
	Network *Namespace
	// NameServer answers what it looks up; the zero value is NameServerAddr.
	NameServer netip.Addr
	// Search are the domains that short names are looked up in.
	Search []string
}

// Bind mounts a folder or file of the machine.
func Bind(source, destination string, readOnly bool) specs.Mount {
	options := []string{"rbind", "rprivate", "rw"}
	if readOnly {
		options[2] = "ro"
	}
	return specs.Mount{Type: "bind", Source: source, Destination: destination, Options: options}
}
