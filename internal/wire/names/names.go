package names

import (
	"cmp"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// JobState is a state's name as people and scripts see it, e.g. "running".
func JobState(s tilthv1.JobState) string { return lower(s.String(), "JOB_STATE_") }

// AgentState is a state's name, e.g. "busy".
func AgentState(s tilthv1.AgentState) string { return lower(s.String(), "AGENT_STATE_") }

// DeviceState is a state's name, e.g. "cordoned".
func DeviceState(s tilthv1.DeviceState) string { return lower(s.String(), "DEVICE_STATE_") }

// AgentKind is a kind's name, e.g. "runner".
func AgentKind(k tilthv1.AgentKind) string { return lower(k.String(), "AGENT_KIND_") }

// WaitReason is a reason's name, e.g. "no_device"; empty when there is none.
func WaitReason(r tilthv1.WaitReason) string {
	if r == tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED {
		return ""
	}
	return lower(r.String(), "WAIT_REASON_")
}

// ErrorClass is a class's name, e.g. "wrong_result"; empty when there was no error.
func ErrorClass(c tilthv1.ErrorClass) string {
	if c == tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return ""
	}
	return lower(c.String(), "ERROR_CLASS_")
}

// ErrorClassOrNone is ErrorClass with "none" where there was no error: a label's value is not empty.
func ErrorClassOrNone(c tilthv1.ErrorClass) string { return cmp.Or(ErrorClass(c), "none") }

// ErrorClassName is ErrorClass for the full name of a class.
func ErrorClassName(name string) string {
	return ErrorClass(tilthv1.ErrorClass(tilthv1.ErrorClass_value[name]))
}

func lower(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }
