package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Call returns who may call a method, such as "/tilth.v1.JobService/GetJob", and its limits; nil for unknown methods.
func Call(method string) *tilthv1.Call { return calls()[method] }

// Methods returns the known methods, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(calls())) }

// RequestBytes returns the maximum length of a method's message; 0 for unknown methods.
func RequestBytes(method string) int { return int(Call(method).GetRequestKib()) << 10 }

// AnswerBytes returns an estimate of the memory for making the answer of a method; 0 = the answer is small, or the
// call waits, and only the finished answer is counted.
func AnswerBytes(method string) int { return int(Call(method).GetAnswerKib()) << 10 }

// calls returns the options of each method of the tracker.
var calls = sync.OnceValue(func() map[string]*tilthv1.Call {
	everyone := []tilthv1.Role{tilthv1.Role_ROLE_READ_ONLY, tilthv1.Role_ROLE_CLIENT, tilthv1.Role_ROLE_AGENT, tilthv1.Role_ROLE_ADMIN}
	standard := &tilthv1.Call{Roles: everyone, RequestKib: 4, AnswerKib: proto.Uint32(0)}
	out := map[string]*tilthv1.Call{
		// Probes have no token, and learn only that a tracker exists.
		healthv1.Health_Check_FullMethodName: {Public: true, RequestKib: 4, AnswerKib: proto.Uint32(0)},
		healthv1.Health_List_FullMethodName:  standard,
		healthv1.Health_Watch_FullMethodName: standard,

		reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      standard,
		reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: standard,
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("tilth.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				if c := proto.GetExtension(m.Options(), tilthv1.E_Call).(*tilthv1.Call); c != nil {
					out["/"+string(m.Parent().FullName())+"/"+string(m.Name())] = c
				}
			}
		}
		return true
	})
	return out
})

// ErrUnreachable is wrapped by errors of calls that could not connect to a tracker.
var ErrUnreachable = errors.New("cannot be reached")

// Explain describes a failed attempt at the tracker at addr and its remedy, on one line, without gRPC's terms. The
// error wraps err, so that its status can still be read.
func Explain(addr, attempt string, err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("%s: %w", attempt, err)
	}
	switch s.Code() {
	case codes.Unavailable:
		if Reason(err) != "" { // a message of the tracker, not of the transport
			return fmt.Errorf("tracker %s: %w", addr, &callError{attempt: attempt, status: s, cause: err})
		}
		return fmt.Errorf("tracker %s %w%s", addr, ErrUnreachable, remedy(s.Message()))
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: tracker %s does not answer: check whether it is overloaded, and try again", attempt, addr)
	case codes.Unauthenticated:
		return fmt.Errorf("%s: tracker %s: %w", attempt, addr, &callError{attempt: "not authenticated", status: s, cause: err})
	case codes.Unimplemented:
		return fmt.Errorf("%s: tracker %s does not know this call: run the same version of tilth on both sides", attempt, addr)
	}
	return &callError{attempt: attempt, status: s, cause: err}
}

// ErrorText returns the text of an error; for a status, the message alone.
func ErrorText(err error) string {
	if s, ok := status.FromError(err); ok && err != nil {
		return s.Message()
	}
	return fmt.Sprint(err)
}

// remedy suggests why a connection could not be made, and what to do.
func remedy(message string) string {
	if strings.Contains(message, "resolver error") || strings.Contains(message, "lookup ") {
		return ": its host name is not known: check its spelling, and DNS"
	}
	if _, cause, is := strings.Cut(message, "tls: "); is {
		return fmt.Sprintf(" by TLS (%s): check that --tls-ca has its authority and that it trusts --tls-cert", strings.Trim(cause, `"`))
	}
	if strings.Contains(message, "while dialing") {
		return ": start it with 'tilth tracker', or name another with --tracker"
	}
	return ", it closed the connection: check that it is a running tracker and, if it uses TLS, name its authority with --tls-ca"
}

// callError is a refusal by the tracker.
type callError struct {
	attempt string
	status  *status.Status
	cause   error
}

func (e *callError) Error() string { return e.attempt + ": " + e.status.Message() }
func (e *callError) Unwrap() error { return e.cause }
