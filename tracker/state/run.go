package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// runs says whether the job runs packages instead of tuning.
func (j *job) runs() bool { return j.spec.GetRun() != nil }

// runDigests are the artifacts that a run needs.
func runDigests(run *tilthv1.RunSpec) (digests []string) {
	for _, p := range run.GetPackages() {
		digests = append(digests, p.GetArtifact().GetDigest())
	}
	if run.GetInputs() != nil {
		digests = append(digests, run.GetInputs().GetDigest())
	}
	return digests
}

// keepRun keeps what a run needs from being evicted. The error names what is not there.
func (c *Change) keepRun(run *tilthv1.RunSpec) error {
	if digest := c.lackedBy(run); digest != "" {
		return refusal.Artifact(digest)
	}
	c.artifacts.Pin(runDigests(run)...)
	return nil
}

func (c *Change) leaseRun(j *job) *tilthv1.LeaseWorkResponse {
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Run{Run: &tilthv1.RunWork{Job: j.whole()}}}
}
