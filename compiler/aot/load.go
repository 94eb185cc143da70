package aot

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/signing"
)

// Load opens a package and prepares it to run on this machine. The weights are mapped from the file, which must not
// change while the model is open. Errors are a single line that names the package and the remedy.
func Load(path string) (*Model, error) {
	l, err := HostLoader()
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	return l.Load(path)
}

// HostLoader returns a loader of packages for this machine.
func HostLoader() (Loader, error) {
	classes, err := target.Classes()
	if err != nil {
		return Loader{}, err
	}
	return Loader{Machine: classes[0].Target, Classes: classes}, nil
}

// Loader opens packages in a process with limited access to its machine.
type Loader struct {
	// Machine is the machine that packages must match.
	Machine *target.Target
	// Classes are the machine's core classes. Unless Threads overrides it, a package runs on its own class; nil
	// allows all processors.
	Classes []target.Class
	// Object, if set, is an empty writable file with a visible name, for the code of a single package. If nil, the
	// code is in a file in memory.
	Object *os.File
	// Key, if set, must have signed packages: the signature of FILE is FILE.minisig. The loader verifies a copy in
	// memory, and loads that copy.
	Key *signing.PublicKey
	// Threads are the threads of the model; the zero value is the compiled number.
	Threads Threads
	// Guest, if set, is the command that runs packages of another architecture: an emulator and the program of
	// buildGuest. Machine is then ignored.
	Guest []string
}

// Load is like the function Load, with the loader's settings.
func (l Loader) Load(path string) (*Model, error) { return l.within(context.Background(), path) }

// within is Load for models whose guest, if any, ends with ctx.
func (l Loader) within(ctx context.Context, path string) (*Model, error) {
	m, err := l.load(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	return m, nil
}

// ReadManifest reads the manifest of a package.
func ReadManifest(path string) (*Manifest, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("reading package %s: %w", path, err)
	}
	defer f.Close()
	m, _, err := readManifest(f)
	if err != nil {
		return nil, fmt.Errorf("reading package %s: %w", path, err)
	}
	return m, nil
}

func readManifest(f *os.File) (*Manifest, map[string]location, error) {
	members, err := index(f)
	if err != nil {
		return nil, nil, err
	}
	data, err := readMember(f, members, manifestName)
	if err != nil {
		return nil, nil, err
	}
	m, err := DecodeManifest(data)
	return m, members, err
}

func (l Loader) open(path string) (*os.File, error) {
	if l.Key != nil {
		return signing.OpenVerified(path, *l.Key)
	}
	return open(path)
}

func (l Loader) load(ctx context.Context, path string) (*Model, error) {
	f, err := l.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return l.loadFrom(ctx, f, path)
}

// loadFrom is load from the file that open has opened.
func (l Loader) loadFrom(ctx context.Context, f *os.File, path string) (*Model, error) {
	if l.Key != nil { // the weights are mapped from the copy, too
		path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	}
	manifest, members, err := readManifest(f)
	if err != nil {
		return nil, err
	}
	if manifest.C != nil {
		return nil, errors.New("it is C source: compile it into a program, as its README.txt says")
	}
	if len(l.Guest) == 0 {
		if err := manifest.runsHere(l.Machine); err != nil {
			return nil, err
		}
	}
	object, err := readMember(f, members, objectName)
	if err != nil {
		return nil, err
	}
	if err := manifest.verify(objectName, object); err != nil {
		return nil, err
	}
	weights, ok := members[weightsName]
	if !ok {
		return nil, fmt.Errorf("it has no %s", weightsName)
	}
	if err := verifyWeights(f, manifest, weights); err != nil {
		return nil, err
	}
	var api *capi
	if len(l.Guest) > 0 {
		api, err = l.inGuest(ctx, manifest, object, path, weights.offset)
	} else {
		api, err = l.loadObject(object)
	}
	if err != nil {
		return nil, manifest.unloadable(err)
	}
	if threads := l.Threads; threads.Count == 0 && len(threads.CPUs) == 0 && api.threads != nil {
		l.Threads.CPUs = target.Affinity(l.Classes, manifest.Target)
	}
	return openModel(path, manifest, api, weights.offset, l.Threads)
}

// verifyWeights checks the checksum of the weights in place, which also reads them into memory.
func verifyWeights(f *os.File, m *Manifest, e location) error {
	if e.size == 0 {
		return m.verify(weightsName, nil)
	}
	skip := e.offset % int64(os.Getpagesize())
	pages, err := unix.Mmap(int(f.Fd()), e.offset-skip, int(e.size+skip), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping %s: %w", weightsName, err)
	}
	err = m.verify(weightsName, pages[skip:])
	if unmap := unix.Munmap(pages); err == nil && unmap != nil {
		err = fmt.Errorf("unmapping %s: %w", weightsName, unmap)
	}
	return err
}
