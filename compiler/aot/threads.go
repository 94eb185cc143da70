package aot

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Threads says which threads run a model on the processor. The zero value is as many as it was compiled for, wherever
// the program may run. Outputs do not depend on it; a model on a GPU passes over it.
type Threads struct {
	// Count is at most as many as the model was compiled for; 0 is that many, or one for each processor of CPUs if
	// those are fewer.
	Count int
	// CPUs are the processors that the threads may run on, by the system's numbers; none = all that the program may
	// use. The thread of the caller is moved there for each execution.
	CPUs []int
}

// mostCPUs bounds a list of processors.
const mostCPUs = 1 << 16

// options are those of the interface in C, which an older package lacks; nil for the zero value.
func (t Threads) options(known bool) (*coptions, error) {
	switch {
	case t.Count == 0 && len(t.CPUs) == 0:
		return nil, nil
	case t.Count < 0 || t.Count > math.MaxInt32:
		return nil, fmt.Errorf("%d threads: want at least 1, or 0 for as many as the model was compiled for", t.Count)
	case len(t.CPUs) > mostCPUs:
		return nil, fmt.Errorf("%d processors: want at most %d", len(t.CPUs), mostCPUs)
	case !known:
		return nil, errors.New("threads and processors cannot be chosen for a package of an older version: compile the model again")
	}
	o := &coptions{size: int64(unsafe.Sizeof(coptions{})), threads: int32(t.Count), cpuCount: int32(len(t.CPUs))}
	list := make([]int32, len(t.CPUs))
	for k, n := range t.CPUs {
		if n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("processor %d: there is none of that number", n)
		}
		list[k] = int32(n)
	}
	o.cpus = unsafe.SliceData(list)
	return o, nil
}

// Threads is how many threads run the model, the caller's included; 1 on a GPU.
func (m *Model) Threads() int {
	if m.api.threads == nil {
		return m.manifest.Target.Threads()
	}
	return int(m.api.threads(m.handle))
}
