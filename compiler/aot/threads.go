package aot

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Threads selects the threads that run a model on the CPU. The zero value is the compiled number, on any processors
// available to the program. Outputs do not depend on it; models on a GPU ignore it.
type Threads struct {
	// Count is at most the compiled number; 0 means that number, or one per processor in CPUs if these are fewer.
	Count int
	// CPUs lists the processors for the threads, by the system's numbers; empty means all available ones. The
	// caller's thread is moved there for each execution.
	CPUs []int
}

// maxCPUs limits a list of processors.
const maxCPUs = 1 << 16

// options returns the options for the C interface, which older packages lack; nil for the zero value.
func (t Threads) options(known bool) (*coptions, error) {
	switch {
	case t.Count == 0 && len(t.CPUs) == 0:
		return nil, nil
	case t.Count < 0 || t.Count > math.MaxInt32:
		return nil, fmt.Errorf("%d threads: want at least 1, or 0 for as many as the model was compiled for", t.Count)
	case len(t.CPUs) > maxCPUs:
		return nil, fmt.Errorf("%d processors: want at most %d", len(t.CPUs), maxCPUs)
	case !known:
		return nil, errors.New("threads and processors cannot be chosen for a package of an older version: compile the model again")
	}
	o := &coptions{size: int64(unsafe.Sizeof(coptions{})), threads: int32(t.Count), cpuCount: int32(len(t.CPUs))}
	list := make([]int32, len(t.CPUs))
	for k, n := range t.CPUs {
		if n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("processor %d does not exist", n)
		}
		list[k] = int32(n)
	}
	o.cpus = unsafe.SliceData(list)
	return o, nil
}

// Threads returns the number of threads that run the model, including the caller's; 1 on a GPU.
func (m *Model) Threads() int {
	if m.api.threads == nil {
		return m.manifest.Target.Threads()
	}
	return int(m.api.threads(m.handle))
}
