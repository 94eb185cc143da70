package wire

import (
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestEnumsHaveNames(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"no error", ErrorClass(tilthv1.ErrorClass_ERROR_CLASS_NONE), ""},
		{"no error in a metric", ErrorClassOrNone(tilthv1.ErrorClass_ERROR_CLASS_NONE), "none"},
		{"error", ErrorClass(tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT), "wrong_result"},
		{"error by name", ErrorClassName("ERROR_CLASS_CRASH"), "crash"},
		{"state", JobState(tilthv1.JobState_JOB_STATE_RUNNING), "running"},
		{"no reason", WaitReason(tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}
