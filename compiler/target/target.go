package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Target describes everything that a schedule or the generated code may depend on: the device, by the part for its
// kind, the backend, and the compiler. Parts are shared between copies: clone the target before modifying one.
type Target struct {
	// Backend names the code generator for the device; see package backend.
	Backend string
	// CPU is the processor that kernels run on, or the host of the GPU.
	CPU *CPU
	// GPU is the graphics processor that kernels run on; nil if none exists.
	GPU *GPU
	// Toolchain names the compiler and its version, e.g. "clang-19.1.7"; empty until one is chosen.
	Toolchain string
	// Objective is the quantity that schedules minimise: Energy, or empty for latency. Records of different
	// objectives are unrelated.
	Objective string
}

// Energy is the objective of targets whose kernels minimise energy, as measured by the device's meter.
const Energy = "energy"

// Default is the backend of targets that name none.
const Default = "cpu"

// backendName restricts backend names to those safe in paths and in target identifiers.
var backendName = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

// form is the JSON form of a target. For compatibility, the processor's fields are at the top level: fingerprints
// are derived from this text.
type form struct {
	Backend string `json:"backend,omitempty"`
	*CPU
	GPU       *GPU   `json:"gpu,omitempty"`
	Toolchain string `json:"toolchain,omitempty"`
	Objective string `json:"objective,omitempty"`
}

// WithObjective returns a copy of the target with an objective: Energy, or empty for latency.
func (t *Target) WithObjective(objective string) *Target {
	c := *t
	c.Objective = objective
	return &c
}

// WithToolchain returns a copy of the target for a given compiler.
func (t *Target) WithToolchain(toolchain string) *Target {
	c := *t
	c.Toolchain = toolchain
	return &c
}

// WithBackend returns a copy of the target for a given backend.
func (t *Target) WithBackend(name string) *Target {
	c := *t
	c.Backend = name
	return &c
}

// Clone returns a copy whose parts may be modified.
func (t *Target) Clone() *Target {
	c, cpu := *t, *t.CPU
	c.CPU = &cpu
	if t.GPU != nil {
		gpu := *t.GPU
		c.GPU = &gpu
	}
	return &c
}

// WithThreads returns a copy of the target with the given number of kernel threads.
func (t *Target) WithThreads(threads int) *Target {
	c := t.Clone()
	c.CPU.Threads = threads
	return c
}

// Check returns an error if the target is invalid.
func (t *Target) Check() error {
	if !backendName.MatchString(t.Backend) {
		return fmt.Errorf("target: %q is not a name of a backend", t.Backend)
	}
	if t.CPU == nil {
		return errors.New("target: the description has no device")
	}
	if t.Objective != "" && t.Objective != Energy {
		return fmt.Errorf("target: objective %q is not known; use %q, or none for latency", t.Objective, Energy)
	}
	if t.Objective != "" && !t.MeasuresEnergy() {
		return errors.New("target: the energy of GPUs is not measured; tune them for latency")
	}
	if t.GPU != nil {
		if err := t.GPU.check(); err != nil {
			return err
		}
	}
	return t.CPU.check()
}

// MarshalJSON implements json.Marshaler.
func (t *Target) MarshalJSON() ([]byte, error) {
	f := form{CPU: t.CPU, GPU: t.GPU, Toolchain: t.Toolchain, Objective: t.Objective}
	if t.Backend != Default {
		f.Backend = t.Backend
	}
	return json.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler. It rejects unknown fields rather than ignore them silently.
func (t *Target) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	f := form{Backend: Default}
	if err := dec.Decode(&f); err != nil {
		return err
	}
	*t = Target{Backend: f.Backend, CPU: f.CPU, GPU: f.GPU, Toolchain: f.Toolchain, Objective: f.Objective}
	return nil
}

// Encode returns the target as JSON, the wire format that Decode reads.
func (t *Target) Encode() []byte {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(data, '\n')
}

// Decode decodes and checks a target in JSON form.
func Decode(data []byte) (*Target, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	t := &Target{}
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("target: not a target description: %w", err)
	}
	if dec.More() {
		return nil, errors.New("target: something follows the target description")
	}
	return t, t.Check()
}

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

// Lacks returns the features that code for the target requires and a machine does not have.
func (t *Target) Lacks(machine *Target) (missing []string) { return machine.Missing(t.CPU.Features) }

// Missing returns those of the features, by compiler names, that the target's processor lacks.
func (t *Target) Missing(features []string) (missing []string) {
	for _, f := range features {
		if !t.CPU.Has(f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// RunsOn returns an error if code for the target cannot run on a machine.
func (t *Target) RunsOn(machine *Target) error {
	c, has := t.CPU, machine.CPU
	if c.Arch != has.Arch {
		return fmt.Errorf("target %s/%s cannot run on this %s machine", c.Arch, c.Model, has.Arch)
	}
	if missing := t.Lacks(machine); len(missing) > 0 {
		if c.Arch == RISCV && missing[0] == "v" {
			return fmt.Errorf("target %s/%s has vectors (v), which this CPU (%s) or its kernel does not have: use --target sifive-u74 or native",
				c.Arch, c.Model, has.Model)
		}
		if bytes := c.sveBytes(); sveLengths[missing[0]] > 0 && has.Has("sve") {
			return fmt.Errorf("target %s/%s needs SVE registers of %d bits, but this process has registers of another size on this CPU (%s): use --target native",
				c.Arch, c.Model, 8*bytes, has.Model)
		}
		return fmt.Errorf("target %s/%s needs %s, which this CPU (%s) does not have", c.Arch, c.Model, missing[0], has.Model)
	}
	return nil
}
