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
	// Build is the candidate's share of the batch's build time.
	Build time.Duration
}

// classOf classifies the failure of a candidate that was compiled alone. It returns false if the candidate is
// not the cause.
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
