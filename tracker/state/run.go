package state

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// runs reports whether the job runs packages instead of tuning.
func (j *job) runs() bool { return j.spec.GetRun() != nil }

// needs returns the artifacts that the job itself needs: a run's packages and inputs, or a model to read.
func (j *job) needs() (digests []string) {
	if j.reads() {
		for _, file := range wire.ModelFiles(j.spec.GetModel()) {
			digests = append(digests, file.GetDigest())
		}
		slices.Sort(digests)
		return slices.Compact(digests)
	}
	run := j.spec.GetRun()
	for _, p := range run.GetPackages() {
		digests = append(digests, p.GetArtifact().GetDigest())
	}
	if run.GetInputs() != nil {
		digests = append(digests, run.GetInputs().GetDigest())
	}
	return digests
}

// pinArtifacts pins the artifacts that a job needs. It returns an error that names a missing one.
func (c *Change) pinArtifacts(j *job) error {
	if digest := c.lackedBy(j); digest != "" {
		return refuseArtifact(digest)
	}
	c.artifacts.Pin(j.needs()...)
	return nil
}

func (c *Change) leaseRun(j *job) *tilthv1.LeaseWorkResponse {
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Run{Run: &tilthv1.RunWork{Job: j.whole()}}}
}
