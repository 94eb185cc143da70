package aot

import "github.com/tilth-dev/tilth/compiler/schedule"

// OwnKernel says which kernel that somebody wrote computes a task.
type OwnKernel struct {
	Name string `json:"name"`
	// Digest is the sha256 of its text, source included.
	Digest string `json:"sha256"`
	// Point is the values of its knobs, KNOB=value separated by blanks.
	Point string `json:"point"`
}

// ownOf is what a manifest says of a schedule's own kernel; nil where it has none.
func ownOf(s *schedule.Schedule) *OwnKernel {
	if s.Own == nil {
		return nil
	}
	return &OwnKernel{Name: s.Own.Kernel.Name, Digest: s.Own.Kernel.Digest(), Point: s.Own.Point()}
}
