package aot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// capi is a package's C interface; see runtime/src/tilth.h.
type capi struct {
	handle uintptr
	// openWith and threads are nil for packages of older versions.
	openWith func(weights string, offset int64, options *coptions) uintptr
	threads  func(model uintptr) int32
	// guest is nil unless the functions run in another process.
	guest       *guest
	open        func(weights string, offset int64) uintptr
	close       func(model uintptr)
	lastError   func() string
	inputCount  func() int32
	outputCount func() int32
	callCount   func() int32
	input       func(model uintptr, index int32) *byte
	output      func(model uintptr, index int32) *byte
	run         func(model uintptr)
	profile     func(model uintptr, seconds *float64)
	peak        func(model uintptr, flops, bytes *float64)
	// deviceSeconds is nil for packages that run on the CPU.
	deviceSeconds func(model uintptr) float64
	// launches and matricesPeak are also nil for packages of older versions.
	launches     func(model uintptr, n *int32) *claunch
	matricesPeak func(model uintptr, format int32) float64
	// integerPeak is nil for packages of older versions.
	integerPeak func(model uintptr) float64
	// outputShape is nil for older versions, whose shapes never depend on data.
	outputShape func(model uintptr, index int32, shape *int64) int32
	// extentCount and setExtent are nil for older versions, which have no dynamic extents.
	extentCount  func() int32
	extentName   func(index int32) string
	setExtent    func(model uintptr, index int32, n int64) int32
	inputTensor  func(index int32) *ctensor
	outputTensor func(index int32) *ctensor
}

// ctensor is struct tilth_tensor.
type ctensor struct {
	_     uintptr // name
	_     int32   // dtype
	_     int32   // rank
	_     uintptr // shape
	bytes int64
}

// coptions is struct tilth_options.
type coptions struct {
	size     int64
	threads  int32
	cpuCount int32
	cpus     *int32
}

// claunch is struct tilth_launch.
type claunch struct {
	kernel              *byte
	call, threads       int32
	blocks, sharedBytes int64
	registers, spilled  int32
	occupancy, seconds  float64
}

// loadObject maps a shared object from a file in memory where possible, which appears in no folder.
func (l Loader) loadObject(object []byte) (*capi, error) {
	path, done, err := l.unpack(object)
	if err != nil {
		return nil, err
	}
	defer done()
	handle, err := dlopen(path)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", objectName, err)
	}
	api := &capi{handle: handle}
	if err := api.bind(); err != nil {
		return nil, err
	}
	return api, nil
}

func (a *capi) bind() error {
	for name, function := range map[string]any{
		"tilth_open": &a.open, "tilth_close": &a.close, "tilth_last_error": &a.lastError, "tilth_input_count": &a.inputCount,
		"tilth_output_count": &a.outputCount, "tilth_call_count": &a.callCount, "tilth_input": &a.input, "tilth_output": &a.output,
		"tilth_run": &a.run, "tilth_profile": &a.profile, "tilth_peak": &a.peak, "tilth_input_tensor": &a.inputTensor, "tilth_output_tensor": &a.outputTensor,
	} {
		symbol, err := dlsym(a.handle, name)
		if err != nil {
			return fmt.Errorf("%s does not export %s: %w", objectName, name, err)
		}
		bindFunc(function, symbol)
	}
	for name, function := range map[string]any{
		"tilth_open_with": &a.openWith, "tilth_threads": &a.threads, "tilth_integer_peak": &a.integerPeak, "tilth_device_seconds": &a.deviceSeconds, "tilth_profile_launches": &a.launches,
		"tilth_matrices_peak": &a.matricesPeak, "tilth_output_shape": &a.outputShape,
		"tilth_extent_count": &a.extentCount, "tilth_extent_name": &a.extentName, "tilth_set_extent": &a.setExtent,
	} {
		if symbol, err := dlsym(a.handle, name); err == nil {
			bindFunc(function, symbol)
		}
	}
	return nil
}

// start opens a model. Error messages are thread-local, so both calls must come from one thread.
func (a *capi) start(weights string, offset int64, o Threads) (uintptr, error) {
	options, err := o.options(a.openWith != nil)
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var handle uintptr
	if options == nil {
		handle = a.open(weights, offset)
	} else {
		handle = a.openWith(weights, offset, options)
	}
	runtime.KeepAlive(options)
	if handle == 0 {
		return 0, fmt.Errorf("starting the model: %s", a.lastError())
	}
	return handle, nil
}

// unload unmaps the code. No function of the interface may be called afterwards.
func (a *capi) unload() error {
	if a.guest != nil {
		return a.guest.stop()
	}
	if err := dlclose(a.handle); err != nil {
		return fmt.Errorf("unloading %s: %w", objectName, err)
	}
	return nil
}

// unpack makes the object available at a path until done is called.
func (l Loader) unpack(object []byte) (path string, done func(), err error) {
	if l.Object == nil {
		return objectFile(object)
	}
	if _, err := l.Object.Write(object); err != nil {
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	return l.Object.Name(), func() {}, nil
}

// objectFile makes the object available at a path until done is called. Paths are never reused, since the dynamic
// linker identifies loaded objects by path. The file is in memory if the kernel supports that, because some
// temporary directories are mounted noexec.
func objectFile(object []byte) (path string, done func(), err error) {
	dir, err := os.MkdirTemp("", "tilth-run-*")
	if err != nil {
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	path = filepath.Join(dir, objectName)
	done = func() { os.RemoveAll(dir) }
	if fd, err := unix.MemfdCreate("tilth-"+objectName, unix.MFD_CLOEXEC); err == nil {
		f := os.NewFile(uintptr(fd), objectName)
		done = func() { f.Close(); os.RemoveAll(dir) }
		_, err = f.Write(object)
		if err == nil {
			err = os.Symlink(fmt.Sprintf("/proc/self/fd/%d", fd), path)
		}
		if err == nil {
			return path, done, nil
		}
	}
	if err := os.WriteFile(path, object, 0o600); err != nil {
		done()
		return "", nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	return path, done, nil
}
