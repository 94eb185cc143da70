package vta

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	cpucode "github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// include precedes kernels for the accelerator.
const include = "#include \"vta_instructions.h\"\n"

// newUnit returns an empty translation unit of kernels for the accelerator alone.
func newUnit() *cpucode.Unit {
	return cpucode.NewUnitOf(include, func(u *cpucode.Unit, symbol string, s *schedule.Schedule) (backend.Info, error) {
		text, info, err := printed(symbol, s, u.Declarations())
		u.Write(text)
		return info, err
	})
}

// printed returns the function that runs a kernel on the accelerator.
func printed(symbol string, s *schedule.Schedule, d *cprint.Declarations) (string, backend.Info, error) {
	p, err := lowered(s)
	if err != nil {
		return "", backend.Info{}, err
	}
	return p.text(symbol, d), backend.Info{Prepared: p.Prepared, WorkspaceBytes: p.WorkspaceBytes}, nil
}

// unit is a translation unit of a package, with kernels for the accelerator and for the host.
type unit struct {
	*cpucode.Unit
	included bool
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(t *target.Target) backend.Unit { return &unit{Unit: cpucode.NewUnit(t)} }

// Add implements backend.Unit.
func (u *unit) Add(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	if !accelerated(s) {
		return u.Unit.Add(symbol, id, s)
	}
	text, info, err := printed(symbol, s, u.Declarations())
	if err != nil {
		return info, err
	}
	if !u.included {
		u.included, text = true, include+text
	}
	u.Write(text + fmt.Sprintf("__attribute__((visibility(\"hidden\"))) const struct tilth_kernel %s = {\"%s\", %d, 0, %s_run, %d, 0, %s};\n",
		symbol, id, len(info.Prepared), symbol, info.WorkspaceBytes, cprint.FloatLiteral(s.ErrorGrowth(), array.Float64)))
	return info, nil
}
