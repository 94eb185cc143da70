package codegen

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Unit is a C translation unit under construction.
type Unit struct {
	// config and order are those of a kernel's passes. observe, if not nil, receives its program after each.
	config  pass.Config
	order   pass.Order
	observe func(step string, f *ir.Func, took time.Duration)
	// keepsCasts keeps casts and products separate.
	keepsCasts bool
	// avoidsDoubles leaves functions that would compute in double to the C library.
	avoidsDoubles bool
	// narrowsIntegers casts double to int32 via int64, because QEMU 7 aborts at RISC-V's single instruction for both.
	narrowsIntegers bool
	declarations    cprint.Declarations
	// packs maps constant and canonical text to the symbols of the packs printed so far.
	packs map[string]string
	code  strings.Builder
	// prelude precedes everything else. printing prints kernels for another backend.
	prelude  string
	printing Functions
	// target is the unit's target; nil for plain scalar C.
	target *target.Target
	// own holds the user-written kernels, each a translation unit.
	own []toolchain.File
}

// Functions prints the functions that run a kernel of the ABI into a unit: SYMBOL_run and everything that it needs.
type Functions func(u *Unit, symbol string, s *schedule.Schedule) (backend.Info, error)

// NewUnitOf returns an empty translation unit with its own prelude, whose kernels another backend prints. Functions
// that pack constants are plain scalar C.
func NewUnitOf(prelude string, printing Functions) *Unit {
	u := newUnit(0)
	u.prelude, u.printing = prelude, printing
	return u
}

// Declarations returns the types and helper functions declared so far.
func (u *Unit) Declarations() *cprint.Declarations { return &u.declarations }

// Include adds the kernels of another unit, which must not have printed packs.
func (u *Unit) Include(other *Unit) {
	u.declarations.Include(&other.declarations)
	u.code.WriteString(other.code.String())
}

// Write adds text to the unit.
func (u *Unit) Write(text string) { u.code.WriteString(text) }

// NewUnit returns an empty translation unit for a target. A nil target selects plain scalar C.
func NewUnit(t *target.Target) *Unit {
	if t == nil {
		return newUnit(0)
	}
	u := newUnit(int64(t.CPU.VectorBytes))
	u.target = t
	u.config.Caches = pass.Caches{LineBytes: cmp.Or(int64(t.CPU.CacheLineBytes), 64), L2Bytes: t.CPU.L2Bytes}
	u.config.Registers = int64(t.CPU.VectorRegisters)
	if !t.HasOperatingSystem() {
		u.config.Room, u.avoidsDoubles, u.keepsCasts = bareRoom, true, t.CPU.Has("mve")
	}
	u.narrowsIntegers = t.Arch() == target.RISCV
	if t.CPU.Has("avx512vbmi") {
		u.config.LookUp = fewLookedUp
	}
	u.config.HasTiles = func(d array.DType) bool { return microarch.HasTiles(t, d) }
	return u
}

func newUnit(vectorBytes int64) *Unit {
	c := pass.Config{VectorBytes: vectorBytes, Room: room, Forms: forms{}, HasTiles: func(array.DType) bool { return false }}
	u := &Unit{config: c, order: order, packs: map[string]string{}}
	if vectorBytes == 0 {
		u.order = plain
	}
	return u
}

// Add prints a kernel and its description, `const struct tilth_kernel symbol`. It omits the functions that pack
// constants, which the caller supplies. id names the kernel in the description. Add returns an error if the schedule
// cannot be lowered.
func (u *Unit) Add(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	k, err := u.kernel(symbol, s)
	if err != nil {
		return backend.Info{}, err
	}
	u.describe(symbol, k.fields(id, "0"))
	return k.Info, nil
}

// AddWithPacks is like Add, but also prints the functions that pack the kernel's constants.
func (u *Unit) AddWithPacks(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	fields, info, err := u.withPacks(symbol, id, s)
	if err == nil {
		u.describe(symbol, fields)
	}
	return info, err
}

func (u *Unit) describe(symbol, fields string) {
	fmt.Fprintf(&u.code, "__attribute__((visibility(\"hidden\"))) const struct tilth_kernel %s = %s;\n", symbol, fields)
}

func (u *Unit) withPacks(symbol, id string, s *schedule.Schedule) (fields string, info backend.Info, err error) {
	k, err := u.kernel(symbol, s)
	if err != nil {
		return "", backend.Info{}, err
	}
	packs, err := u.packTable(symbol, len(s.Workload.Inputs), k.Prepared)
	if err != nil {
		return "", backend.Info{}, err
	}
	return k.fields(id, packs), k.Info, nil
}

// printed is a kernel with printed functions.
type printed struct {
	backend.Info
	symbol string
	growth float64
}

// fields returns the initialiser of the kernel's description.
func (k printed) fields(id, packs string) string {
	return fmt.Sprintf("{\"%s\", %d, %s, %s_run, %d, %d, %s}", id, len(k.Prepared), packs, k.symbol, k.WorkspaceBytes, k.WorkerBytes,
		cprint.FloatLiteral(k.growth, array.Float64))
}

// kernel prints a kernel's functions.
func (u *Unit) kernel(symbol string, s *schedule.Schedule) (printed, error) {
	if u.printing != nil {
		info, err := u.printing(u, symbol, s)
		return printed{info, symbol, s.ErrorGrowth()}, err
	}
	if s.Own != nil {
		info, err := u.ownKernel(symbol, s)
		return printed{info, symbol, s.ErrorGrowth()}, err
	}
	f, err := u.order.Lower(s, &u.config, u.observe)
	if err != nil {
		return printed{}, err
	}
	return printed{u.functions(symbol, f, ""), symbol, s.ErrorGrowth()}, nil
}

// functions prints the functions that run a program, with C attributes.
func (u *Unit) functions(symbol string, f *ir.Func, attributes string) backend.Info {
	k := &kernelPrinter{unit: u, symbol: symbol, f: f, attributes: attributes}
	run := k.run()
	fmt.Fprintf(&u.code, "enum { %s_shared_bytes = %d, %s_worker_bytes = %d };\n", symbol, f.WorkspaceBytes, symbol, f.WorkerBytes)
	u.code.WriteString(run)
	return backend.Info{Prepared: f.Prepared, WorkspaceBytes: f.WorkspaceBytes, WorkerBytes: f.WorkerBytes}
}

// Source returns the whole translation unit.
func (u *Unit) Source() string {
	return cruntime.Header + commonPrelude + u.prelude + u.declarations.Text() + u.code.String()
}

// Own implements backend.Unit.
func (u *Unit) Own() []toolchain.File { return u.own }

// Embedded implements backend.Unit. Processors run the source directly.
func (u *Unit) Embedded() []toolchain.Embedded { return nil }
