package client

import (
	"context"

	"github.com/tilth-dev/tilth/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// RoleModel is that of an artifact with a model.
const RoleModel = "model"

// SubmitModel uploads an ONNX file, with its weights in it, and submits a job for its tasks, which a tuner of the farm
// makes: no compiler is needed here. spec has no tasks, of its target the device class and perhaps the toolchain, and
// in Model what is asked of the model; its file is set.
func (c *Client) SubmitModel(ctx context.Context, path string, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	files := artifact.NewClient(c.conn, nil, c.log)
	for attempt := 1; ; attempt++ {
		ref, err := files.Upload(ctx, RoleModel, path)
		if err != nil {
			return nil, c.explain("upload "+path, err)
		}
		if spec.Model == nil {
			spec.Model = &tilthv1.ModelSpec{}
		}
		spec.Model.File = ref
		job, err := c.Submit(ctx, spec)
		if err == nil || attempt == mostUploads || wire.Reason(err) != wire.ReasonMissingArtifact {
			return job, err
		}
	}
}
