package wire

import (
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// MaxMessageBytes bounds a message, either way.
const MaxMessageBytes = 64 << 20

// WindowBytes is how much may be on its way, either way, on a connection or in one of its calls, before it is read. It
// is fixed: what it may be is otherwise found out by a ping with every message, which costs as much as a small call.
const WindowBytes = 4 << 20

// Reasons carried by the ErrorInfo detail of a refusal, so that nobody needs to read messages.
const (
	// ReasonStaleLease comes with FAILED_PRECONDITION: the lease is no longer held; drop the work.
	ReasonStaleLease = "STALE_LEASE"
	// ReasonVoidSession comes with NOT_FOUND: join again.
	ReasonVoidSession = "VOID_SESSION"
	// ReasonHistory comes with FAILED_PRECONDITION: a job's events are not those that the caller knows; read them
	// anew.
	ReasonHistory = "HISTORY"
	// ReasonMissingArtifact comes with FAILED_PRECONDITION: upload it and report again.
	ReasonMissingArtifact = "MISSING_ARTIFACT"
	// ReasonStopping comes with UNAVAILABLE: the tracker lives but is about to end, and its message says why.
	ReasonStopping = "STOPPING"
	// ReasonUnwritten comes with UNAVAILABLE: what was handed in could not be stored, and the message says why.
	ReasonUnwritten = "UNWRITTEN"
	// ReasonStoreAway comes with UNAVAILABLE: the server of the tracker's database is away; try again later.
	ReasonStoreAway = "STORE_AWAY"
	// ReasonStandby comes with UNAVAILABLE: the tracker stands by, and another one serves; ask at another address.
	ReasonStandby = "STANDBY"
	// ReasonQuota comes with RESOURCE_EXHAUSTED: the owner has what it may have, and the message says of what.
	ReasonQuota = "QUOTA"
	// ReasonRate comes with RESOURCE_EXHAUSTED and a RetryInfo: the caller calls too often; try again when that says.
	ReasonRate = "RATE"
	// ReasonOverloaded comes with UNAVAILABLE: the tracker has no room now; try again later.
	ReasonOverloaded = "OVERLOADED"
	// ReasonIssuer comes with UNAVAILABLE: the keys that the caller's token is checked with cannot be read from its
	// issuer now; try again later. With a RetryInfo they are being read; try again when that says.
	ReasonIssuer = "ISSUER"
	// ReasonShards comes with FAILED_PRECONDITION: the farm has several shards, and the call names none; see Shard.
	ReasonShards = "SHARDS"
	// ReasonOtherShard comes with FAILED_PRECONDITION: the owner's jobs are in another shard; see Shard.
	ReasonOtherShard = "OTHER_SHARD"
)

const errorDomain = "tilth.v1"

// Refuse makes an error with a reason.
func Refuse(code codes.Code, reason, format string, args ...any) error {
	s := status.Newf(code, format, args...)
	if detailed, err := s.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain}); err == nil {
		s = detailed
	}
	return s.Err()
}

// shardKey is where a refusal for the sake of shards has a number.
const shardKey = "shard"

// RefuseShard makes an error with a reason that is about shards, and its number.
func RefuseShard(reason string, number int, format string, args ...any) error {
	s := status.Newf(codes.FailedPrecondition, format, args...)
	info := &errdetails.ErrorInfo{Reason: reason, Domain: errorDomain, Metadata: map[string]string{shardKey: strconv.Itoa(number)}}
	if detailed, err := s.WithDetails(info); err == nil {
		s = detailed
	}
	return s.Err()
}

// Shard is the number of a refusal with a reason: how many shards there are (ReasonShards), or which is the owner's
// (ReasonOtherShard). ok is false of every other error.
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

// RefuseUntil makes an error with a reason, which says after how long to try again.
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

// RetryAfter returns after how long a refusal is to be tried again; false when it says nothing of that.
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

// Reason returns the reason of a refusal; empty when it has none.
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
