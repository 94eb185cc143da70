package packagerun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Serve is the main function of the process: it reads a request and writes an answer. It returns an error if
// it could do neither.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	o, err := readOrder(bufio.NewReader(stdin))
	if err != nil {
		return fmt.Errorf("run packages: reading the request: %w", err)
	}
	if err := sandbox.Seal(); err != nil {
		return fmt.Errorf("run packages: %w", err)
	}
	var a answer
	result, err := o.run(ctx)
	if err != nil {
		a.Error = o.named(err.Error())
	} else {
		a.Result = result
	}
	if err := json.NewEncoder(stdout).Encode(a); err != nil {
		return fmt.Errorf("run packages: writing the answer: %w", err)
	}
	return nil
}

// named replaces paths by the packages' names, because the caller does not know the paths.
func (r Request) named(message string) string {
	for _, p := range r.Packages {
		message = strings.ReplaceAll(message, p.Path, p.Name)
	}
	if r.Inputs != "" {
		message = strings.ReplaceAll(message, r.Inputs, "the inputs")
	}
	return message
}

// run runs packages in this process.
func (o order) run(ctx context.Context) (result *Result, err error) {
	if len(o.Classes) == 0 {
		return nil, errors.New("the order names no machine")
	}
	models := make([]*aot.Model, 0, len(o.Packages))
	defer func() {
		for _, m := range models {
			err = errors.Join(err, m.Close())
		}
	}()
	for i, p := range o.Packages {
		m, err := aot.Loader{Machine: o.Classes[0].Target, Classes: o.Classes, Object: os.NewFile(uintptr(firstObject+i), o.Objects[i])}.Load(p.Path)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
		if err := o.execute(m, o.Outputs != "" && i == 0); err != nil {
			return nil, err
		}
	}
	samples, err := Turns(ctx, models, o.Repeat, o.Number)
	if err != nil {
		return nil, err
	}
	result = &Result{}
	for i, m := range models {
		p := PackageResult{Samples: samples[i]}
		if p.Manifest, err = describe(m.Manifest()); err != nil {
			return nil, err
		}
		if o.Profile > 0 && i == 0 {
			if p.Profile, err = profileOf(ctx, m, o.Profile); err != nil {
				return nil, err
			}
		}
		result.Packages = append(result.Packages, p)
	}
	return result, nil
}

// execute runs a model once on the requested inputs and writes the outputs if requested.
func (r Request) execute(m *aot.Model, keep bool) error {
	inputs := RandomInputs(m.Manifest(), nil)
	if r.Inputs != "" {
		var err error
		if inputs, err = npz.ReadFile(r.Inputs); err != nil {
			return err
		}
		if inputs, err = m.Manifest().Adapt(inputs); err != nil {
			return err
		}
	}
	outputs, err := m.Run(inputs)
	if err != nil || !keep {
		return err
	}
	f := os.NewFile(outputsDescriptor, "outputs")
	if err := errors.Join(npz.Write(f, outputs), f.Close()); err != nil {
		return fmt.Errorf("writing the outputs: %w", err)
	}
	return nil
}

// Turns times models in turns, so that changes of the machine's speed affect all of them. It returns seconds
// per execution, by model.
func Turns(ctx context.Context, models []*aot.Model, repeat, number int) ([][]float64, error) {
	samples := make([][]float64, len(models))
	if len(models) == 1 && repeat > 0 {
		alone, err := models[0].Time(ctx, repeat, number)
		return [][]float64{alone}, err
	}
	for range repeat {
		for i, m := range models {
			turn, err := m.Time(ctx, 1, number)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], turn...)
		}
	}
	return samples, nil
}

func profileOf(ctx context.Context, m *aot.Model, repeat int) (json.RawMessage, error) {
	p, err := profile.Of(ctx, m, repeat, m.Peak())
	if err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// describe returns the manifest of a package without its large parts.
func describe(m *aot.Manifest) (json.RawMessage, error) {
	short := *m
	short.Tasks, short.Calls, short.Members = nil, nil, nil
	return json.Marshal(short)
}
