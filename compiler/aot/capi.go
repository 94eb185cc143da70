package aot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// capi is a package's C interface; see runtime/src/tilth.h.
type capi struct {
	handle uintptr
	// release lets the object's file go. Its path must stay taken until then: the dynamic linker takes an object of a path
	// that it has open for the one it has.
	release      func()
	open         func(weights string, offset int64) uintptr
	close        func(model uintptr)
	lastError    func() string
	inputCount   func() int32
	outputCount  func() int32
	callCount    func() int32
	input        func(model uintptr, index int32) *byte
	output       func(model uintptr, index int32) *byte
	run          func(model uintptr)
	profile      func(model uintptr, seconds *float64)
	inputTensor  func(index int32) *ctensor
	outputTensor func(index int32) *ctensor
}

// ctensor is struct tilth_tensor.
type ctensor struct {
	name  uintptr
	dtype int32
	rank  int32
	shape uintptr
	bytes int64
}

// loadObject maps a shared object that never appears in the file system where it can be told from a file in memory.
func loadObject(object []byte) (*capi, error) {
	path, release, err := objectFile(object)
	if err != nil {
		return nil, err
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		release()
		return nil, fmt.Errorf("loading %s: %w", objectName, err)
	}
	api := &capi{handle: handle, release: release}
	if err := api.bind(); err != nil {
		return nil, errors.Join(err, api.unload())
	}
	return api, nil
}

func (a *capi) bind() error {
	for name, function := range map[string]any{
		"tilth_open": &a.open, "tilth_close": &a.close, "tilth_last_error": &a.lastError, "tilth_input_count": &a.inputCount,
		"tilth_output_count": &a.outputCount, "tilth_call_count": &a.callCount, "tilth_input": &a.input, "tilth_output": &a.output,
		"tilth_run": &a.run, "tilth_profile": &a.profile, "tilth_input_tensor": &a.inputTensor, "tilth_output_tensor": &a.outputTensor,
	} {
		symbol, err := purego.Dlsym(a.handle, name)
		if err != nil {
			return fmt.Errorf("%s does not export %s: %w", objectName, name, err)
		}
		purego.RegisterFunc(function, symbol)
	}
	return nil
}

// start opens a model. The message of a failure is kept by thread, so both calls must come from one.
func (a *capi) start(weights string, offset int64) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle := a.open(weights, offset)
	if handle == 0 {
		return 0, fmt.Errorf("starting the model: %s", a.lastError())
	}
	return handle, nil
}

// unload unmaps the code. No function of the interface may be called afterwards.
func (a *capi) unload() error {
	defer a.release()
	if err := purego.Dlclose(a.handle); err != nil {
		return fmt.Errorf("unloading %s: %w", objectName, err)
	}
	return nil
}

// objectFile gives the bytes a path until release is called: in memory, or where the kernel has no such files in a folder that
// only this user can read.
func objectFile(object []byte) (path string, release func(), err error) {
	fd, err := unix.MemfdCreate("tilth-"+objectName, unix.MFD_CLOEXEC)
	if err != nil {
		return temporaryObject(object)
	}
	f := os.NewFile(uintptr(fd), objectName)
	if _, err := f.Write(object); err != nil {
		f.Close()
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { f.Close() }, nil
}

func temporaryObject(object []byte) (path string, release func(), err error) {
	dir, err := os.MkdirTemp("", "tilth-run-*")
	if err != nil {
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	path = filepath.Join(dir, objectName)
	if err := os.WriteFile(path, object, 0o600); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	return path, func() { os.RemoveAll(dir) }, nil
}
