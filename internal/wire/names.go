// This file names enum values for users, scripts and metrics, such as "wrong_result" for ERROR_CLASS_WRONG_RESULT.

package wire

import (
	"cmp"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// JobState returns a state's name, such as "running".
func JobState(s tilthv1.JobState) string { return lower(s.String(), "JOB_STATE_") }

// AgentState returns a state's name, such as "busy".
func AgentState(s tilthv1.AgentState) string { return lower(s.String(), "AGENT_STATE_") }

// DeviceState returns a state's name, such as "cordoned".
func DeviceState(s tilthv1.DeviceState) string { return lower(s.String(), "DEVICE_STATE_") }

// AgentKind returns a kind's name, such as "runner".
func AgentKind(k tilthv1.AgentKind) string { return lower(k.String(), "AGENT_KIND_") }

// WaitReason returns a reason's name, such as "no_device"; empty if unspecified.
func WaitReason(r tilthv1.WaitReason) string {
	if r == tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED {
		return ""
	}
	return lower(r.String(), "WAIT_REASON_")
}

// ErrorClass returns a class's name, such as "wrong_result"; empty if there was no error.
func ErrorClass(c tilthv1.ErrorClass) string {
	if c == tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return ""
	}
	return lower(c.String(), "ERROR_CLASS_")
}

// ErrorClassOrNone is like ErrorClass but returns "none" if there was no error, for metric labels.
func ErrorClassOrNone(c tilthv1.ErrorClass) string { return cmp.Or(ErrorClass(c), "none") }

// ErrorClassName is like ErrorClass for the enum name of a class.
func ErrorClassName(name string) string {
	return ErrorClass(tilthv1.ErrorClass(tilthv1.ErrorClass_value[name]))
}

func lower(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// maxLabelBytes is the limit of names that are only displayed, such as those of jobs and packages.
const maxLabelBytes = 256

// Label shortens a name made from file names to what such a field accepts. File names need not be UTF-8.
func Label(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= maxLabelBytes {
		return name
	}
	const mark = "…"
	return strings.ToValidUTF8(name[:maxLabelBytes-len(mark)], "") + mark
}
