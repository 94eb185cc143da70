// This file names enum values for users, scripts and metrics, such as "wrong_result" for ERROR_CLASS_WRONG_RESULT.

package wire

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// MaxMessageBytes bounds a message in either direction.
const MaxMessageBytes = 64 << 20

// WindowBytes is the flow control window of connections and calls, in either direction. It is fixed because dynamic
// windows need a ping with every message, which costs as much as a small call.
const WindowBytes = 4 << 20

// Reasons in the ErrorInfo detail of a refusal, so that clients need not parse messages.
const (
	// ReasonStaleLease accompanies FAILED_PRECONDITION: the lease is no longer held; drop the work.
	ReasonStaleLease = "STALE_LEASE"
	// ReasonVoidSession accompanies NOT_FOUND: join again.
	ReasonVoidSession = "VOID_SESSION"
	// ReasonHistory accompanies FAILED_PRECONDITION: the job's events are not those that the caller knows; read them
	// from the start.
	ReasonHistory = "HISTORY"
	// ReasonMissingArtifact accompanies FAILED_PRECONDITION: upload the artifact and report again.
	ReasonMissingArtifact = "MISSING_ARTIFACT"
	// ReasonStopping accompanies UNAVAILABLE: the tracker is shutting down; see the message.
	ReasonStopping = "STOPPING"
	// ReasonUnwritten accompanies UNAVAILABLE: the request could not be stored; see the message.
	ReasonUnwritten = "UNWRITTEN"
	// ReasonStoreAway accompanies UNAVAILABLE: the tracker's database is unavailable; retry later.
	ReasonStoreAway = "STORE_AWAY"
	// ReasonStandby accompanies UNAVAILABLE: the tracker is on standby; call the active one at another address.
	ReasonStandby = "STANDBY"
	// ReasonQuota accompanies RESOURCE_EXHAUSTED: the owner's quota is used up; the message names the quota.
	ReasonQuota = "QUOTA"
	// ReasonRate accompanies RESOURCE_EXHAUSTED and a RetryInfo: the caller exceeds its rate; retry after that delay.
	ReasonRate = "RATE"
	// ReasonOverloaded accompanies UNAVAILABLE: the tracker is overloaded; retry later.
	ReasonOverloaded = "OVERLOADED"
	// ReasonIssuer accompanies UNAVAILABLE: the issuer's keys for the caller's token cannot be fetched; retry later.
	// With a RetryInfo they are being fetched; retry after that delay.
	ReasonIssuer = "ISSUER"
	// ReasonShards accompanies FAILED_PRECONDITION: the farm has several shards, and the call names none; see Shard.
	ReasonShards = "SHARDS"
	// ReasonOtherShard accompanies FAILED_PRECONDITION: the owner's jobs are in another shard; see Shard.
	ReasonOtherShard = "OTHER_SHARD"
)

const errorDomain = "tilth.v1"

// Refuse returns a status error with a reason.
func Refuse(code codes.Code, reason, format string, args ...any) error {
	s := status.Newf(code, format, args...)
	if detailed, err := s.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain}); err == nil {
		s = detailed
	}
	return s.Err()
}

// shardKey is the metadata key of the number in a refusal about shards.
const shardKey = "shard"

// RefuseShard returns a status error with a reason about shards, and its number.
func RefuseShard(reason string, number int, format string, args ...any) error {
	s := status.Newf(codes.FailedPrecondition, format, args...)
	info := &errdetails.ErrorInfo{Reason: reason, Domain: errorDomain, Metadata: map[string]string{shardKey: strconv.Itoa(number)}}
	if detailed, err := s.WithDetails(info); err == nil {
		s = detailed
	}
	return s.Err()
}

// Shard returns the number in a refusal: the number of shards (ReasonShards), or the owner's shard (ReasonOtherShard).
// ok is false for other errors.
func Shard(err error, reason string) (number int, ok bool) {
	s, is := status.FromError(err)
	if !is || s == nil {
		return 0, false
	}
	for _, d := range s.Details() {
		if info, is := d.(*errdetails.ErrorInfo); is && info.GetDomain() == errorDomain && info.GetReason() == reason {
			number, err := strconv.Atoi(info.GetMetadata()[shardKey])
			return number, err == nil && number >= 0
		}
	}
	return 0, false
}

// RefuseUntil returns a status error with a reason and a retry delay.
func RefuseUntil(wait time.Duration, code codes.Code, reason, format string, args ...any) error {
	s := status.Newf(code, format, args...)
	detailed, err := s.WithDetails(
		&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain}, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)},
	)
	if err == nil {
		s = detailed
	}
	return s.Err()
}

// RetryAfter returns the retry delay of a refusal; false without a delay.
func RetryAfter(err error) (time.Duration, bool) {
	s, ok := status.FromError(err)
	if !ok || s == nil {
		return 0, false
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// Reason returns the reason of a refusal; empty without a reason.
func Reason(err error) string {
	s, ok := status.FromError(err)
	if !ok || s == nil {
		return ""
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return info.GetReason()
		}
	}
	return ""
}

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
