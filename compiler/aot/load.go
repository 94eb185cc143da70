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

// Load opens a package and makes it ready to run on this machine. The weights are used where they lie in the file,
// which must not change while the model is open. Errors are one line and name the package and the remedy.
func Load(path string) (*Model, error) {
	l, err := Here()
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	return l.Load(path)
}

// Here is a loader of packages for this machine.
func Here() (Loader, error) {
	classes, err := target.Classes()
	if err != nil {
		return Loader{}, err
	}
	return Loader{Machine: classes[0].Target, Classes: classes}, nil
}

// Loader opens packages in a process that sees little of its machine.
type Loader struct {
	// Machine is what packages must fit.
	Machine *target.Target
	// Classes are the machine's classes of cores. Unless Threads says otherwise, a package runs on those of its own;
	// nil = wherever the program may run.
	Classes []target.Class
	// Object, when set, is an empty file, open for writing and seen by its name, that a package's code is unpacked to.
	// It is for one package. nil = a file in memory.
	Object *os.File
	// Key, when set, must have signed packages: the signature of FILE is FILE.minisig. What is verified is a copy in
	// memory, and that is what is loaded.
	Key *signing.PublicKey
	// Threads are those that run the model; the zero value is what it was compiled for.
	Threads Threads
	// Guest, when set, is the command that runs packages which this process cannot load, being of another
	// architecture: an emulator and the program that buildGuest makes. Machine is not asked then.
	Guest []string
}

// Load is the package's Load.
func (l Loader) Load(path string) (*Model, error) { return l.within(context.Background(), path) }

// within is Load for models whose guest, if they have one, ends with ctx.
func (l Loader) within(ctx context.Context, path string) (*Model, error) {
	m, err := l.load(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	return m, nil
}

// ReadManifest reads what a package says of itself.
func ReadManifest(path string) (*Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading package: %w", err)
	}
	defer f.Close()
	m, _, err := readManifest(f)
	if err != nil {
		return nil, fmt.Errorf("reading package %s: %w", path, err)
	}
	return m, nil
}

func readManifest(f *os.File) (*Manifest, map[string]extent, error) {
	members, err := index(f)
	if err != nil {
		return nil, nil, err
	}
	data, err := readMember(f, members, manifestName)
	if err != nil {
		return nil, nil, err
	}
	m, err := decodeManifest(data)
	return m, members, err
}

func (l Loader) open(path string) (*os.File, error) {
	if l.Key != nil {
		return signing.OpenVerified(path, *l.Key)
	}
	return os.Open(path)
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

// verifyWeights compares the checksum of the weights where they lie, which also brings them into memory.
func verifyWeights(f *os.File, m *Manifest, e extent) error {
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
