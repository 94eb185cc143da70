package aot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
)

// RunOnce compiles programs into one package with program.Join, runs it once and returns the named outputs of each
// program on its inputs. It obtains schedules from the options for the tasks of the joined program, ignores Choices
// and Output, and removes the package.
func RunOnce(ctx context.Context, programs []*program.Program, inputs []map[string]*array.Array, o Options,
	schedules func(tasks []program.Task) ([]Choice, error)) (outputs []map[string]*array.Array, err error) {
	all, err := RunSeveral(ctx, programs, [][]map[string]*array.Array{inputs}, o, schedules)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// RunSeveral is like RunOnce, with several successive runs of the package.
func RunSeveral(ctx context.Context, programs []*program.Program, runs [][]map[string]*array.Array, o Options,
	schedules func(tasks []program.Task) ([]Choice, error)) (outputs [][]map[string]*array.Array, err error) {
	dir, err := os.MkdirTemp("", "tilth-once-*")
	if err != nil {
		return nil, fmt.Errorf("a folder for the package of %d programs: %w", len(programs), err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	joined := program.Join("joined", programs)
	if o.Choices, err = schedules(joined.Tasks); err != nil {
		return nil, err
	}
	o.Output = filepath.Join(dir, "joined.tar")
	if _, err := Compile(ctx, joined, o); err != nil {
		return nil, err
	}
	m, err := o.open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for _, inputs := range runs {
		all, err := m.Run(joinedValues(inputs))
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, apart(programs, all))
	}
	return outputs, nil
}

// open opens the compiled package, here or under the emulator.
func (o Options) open(ctx context.Context, dir string) (*Model, error) {
	if len(o.Emulator) == 0 {
		return Load(o.Output)
	}
	program, err := buildGuest(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	return Loader{Guest: append(slices.Clone(o.Emulator), program)}.within(ctx, o.Output)
}

// joinedValues returns the values of all programs by their joined names.
func joinedValues(each []map[string]*array.Array) map[string]*array.Array {
	all := map[string]*array.Array{}
	for k, values := range each {
		for name, a := range values {
			all[program.JoinedName(k, name)] = a
		}
	}
	return all
}

// apart returns the outputs of each program by their own names.
func apart(programs []*program.Program, all map[string]*array.Array) []map[string]*array.Array {
	each := make([]map[string]*array.Array, len(programs))
	for k, p := range programs {
		each[k] = map[string]*array.Array{}
		for _, v := range p.Outputs {
			name := p.Values[v].Name
			each[k][name] = all[program.JoinedName(k, name)]
		}
	}
	return each
}
