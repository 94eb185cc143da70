package builder

import (
	"errors"
	"time"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Outcome is the result of building one candidate.
type Outcome struct {
	// Candidate is the digest of its trace.
	Candidate string
	// Error is NONE, BAD_SCHEDULE, COMPILE_ERROR or COMPILE_LIMIT.
	Error   tilthv1.ErrorClass
	Message string
	// Build is the candidate's share of the batch's time.
	Build time.Duration
}

// classOf is the verdict on a candidate that failed to compile alone; false when the candidate is not to blame.
func classOf(err error) (tilthv1.ErrorClass, bool) {
	var failure *toolchain.Error
	if !errors.As(err, &failure) {
		return 0, false
	}
	switch failure.Kind {
	case toolchain.Rejected:
		return tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, true
	case toolchain.Limit:
		return tilthv1.ErrorClass_ERROR_CLASS_COMPILE_LIMIT, true
	default:
		return 0, false
	}
}
