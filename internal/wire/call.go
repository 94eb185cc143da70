package wire

import (
	"maps"
	"slices"
	"sync"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
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
