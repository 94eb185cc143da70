package client

import (
	"cmp"
	"context"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Roles of the artifacts of a job with models.
const (
	RoleModel = "model"
	RoleSeeds = "seeds"
)

// ModelFiles lists the local files of a job with models.
type ModelFiles struct {
	// Models lists ONNX files with embedded weights: the job's model first, then the others.
	Models []string
	// Seeds lists files with schedules of other compilers, such as TVM logs.
	Seeds []SeedFile
}

// SeedFile is a file with schedules of other compilers.
type SeedFile struct {
	Path   string
	Format tilthv1.SeedFormat
}

// SubmitModel uploads an ONNX file and submits a job for its tasks; see SubmitModels.
func (c *Client) SubmitModel(ctx context.Context, path string, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	return c.SubmitModels(ctx, ModelFiles{Models: []string{path}}, spec)
}

// SubmitModels uploads files and submits a job for the tasks of the models. A tuner of the farm extracts the tasks, so
// no compiler is needed here. spec has no tasks; its target has the device class and optionally the toolchain; its
// Model has the options of the models. SubmitModels sets the files in it and adds a model for each further file.
func (c *Client) SubmitModels(ctx context.Context, files ModelFiles, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	if len(files.Models) == 0 {
		return nil, fmt.Errorf("submit job %s: there is no model to tune", spec.GetName())
	}
	spec.Model = cmp.Or(spec.Model, &tilthv1.ModelSpec{})
	if n := len(spec.Model.Others); n > len(files.Models)-1 {
		return nil, fmt.Errorf("submit job %s: it has %d models and %d files: name a file for each", spec.GetName(), n+1, len(files.Models))
	}
	return c.submitUploaded(ctx, spec, func() error { return c.uploadModels(ctx, files, spec.Model) })
}

func (c *Client) uploadModels(ctx context.Context, files ModelFiles, model *tilthv1.ModelSpec) error {
	for i, path := range files.Models {
		ref, err := c.upload(ctx, RoleModel, path)
		if err != nil {
			return err
		}
		if i == 0 {
			model.File = ref
			continue
		}
		if i > len(model.Others) {
			model.Others = append(model.Others, &tilthv1.OtherModel{})
		}
		model.Others[i-1].File = ref
	}
	var seeds []*tilthv1.SeedFile
	for _, s := range files.Seeds {
		ref, err := c.upload(ctx, RoleSeeds, s.Path)
		if err != nil {
			return err
		}
		seeds = append(seeds, &tilthv1.SeedFile{File: ref, Format: s.Format})
	}
	if len(seeds) > 0 {
		model.Seeds = seeds
	}
	return nil
}
