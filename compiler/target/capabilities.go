package target

// HasOperatingSystem reports whether programs for the target run under an operating system. Those of microcontrollers
// are freestanding.
func (t *Target) HasOperatingSystem() bool { return !t.CPU.isBare() }

// RunsOnCPU reports whether kernels run on the processor, rather than on a GPU that it hosts.
func (t *Target) RunsOnCPU() bool { return t.GPU == nil }

// MeasuresEnergy reports whether the energy of kernels can be an objective.
func (t *Target) MeasuresEnergy() bool { return t.RunsOnCPU() }

// SupportsOpenExtents reports whether extents may stay unknown until a package runs.
func (t *Target) SupportsOpenExtents() bool { return t.RunsOnCPU() }

// SupportsC reports whether packages can be exported as C source.
func (t *Target) SupportsC() bool { return t.RunsOnCPU() }
