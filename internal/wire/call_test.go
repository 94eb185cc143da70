package wire

import (
	"strings"
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// requests returns the types of all requests to a tracker's services. It finds them by reflection, independently of
// their options.
func requests(t *testing.T) map[string]protoreflect.MessageDescriptor {
	t.Helper()
	out := map[string]protoreflect.MessageDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				out["/"+string(s.FullName())+"/"+string(m.Name())] = m.Input()
			}
		}
		return true
	})
	return out
}

// long calls f with every variable-size field of a message and its nested messages.
func long(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool, f func(protoreflect.FieldDescriptor)) {
	if seen[m.FullName()] {
		return
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		if d.IsList() || d.IsMap() || d.Kind() == protoreflect.StringKind || d.Kind() == protoreflect.BytesKind {
			f(d)
		}
		if d.Message() != nil {
			long(d.Message(), seen, f)
		}
	}
}

// TestEveryFieldOfEveryRequestHasABound catches new fields and methods without a bound, and bounds without effect.
func TestEveryFieldOfEveryRequestHasABound(t *testing.T) {
	seen, checked := map[protoreflect.FullName]bool{}, map[protoreflect.FullName]bool{}
	for method, request := range requests(t) {
		if RequestBytes(method) == 0 {
			t.Errorf("%s lacks the option call.request_kib", method)
		}
		if Call(method).AnswerKib == nil {
			t.Errorf("%s lacks the option call.answer_kib", method)
		}
		long(request, seen, func(d protoreflect.FieldDescriptor) {
			checked[d.FullName()] = true
			b := boundOf(d)
			if (d.IsList() || d.IsMap()) != (b.items > 0) {
				t.Errorf("%s is bounded by %d items", d.FullName(), b.items)
			}
			if text := !d.IsMap() && (d.Kind() == protoreflect.StringKind || d.Kind() == protoreflect.BytesKind); text != (b.bytes > 0) {
				t.Errorf("%s is bounded by %d bytes", d.FullName(), b.bytes)
			}
		})
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("tilth.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			for j := range f.Messages().Get(i).Fields().Len() {
				if d := f.Messages().Get(i).Fields().Get(j); boundOf(d) != (bound{}) && !checked[d.FullName()] {
					t.Errorf("%s has a bound, but no request contains it", d.FullName())
				}
			}
		}
		return true
	})
}

// TestRightsAgree finds calls whose roles contradict what else their options say.
func TestRightsAgree(t *testing.T) {
	for _, method := range Methods() {
		c := Call(method)
		if len(c.GetRoles()) == 0 && !c.GetPublic() {
			t.Errorf("no role may call %s", method)
		}
		if c.GetPublic() && method != healthv1.Health_Check_FullMethodName {
			t.Errorf("%s needs no authentication", method)
		}
		for _, role := range c.GetRoles() {
			if _, known := tilthv1.Role_name[int32(role)]; !known || role == tilthv1.Role_ROLE_UNSPECIFIED {
				t.Errorf("%s names the role %v", method, role)
			}
			if role == tilthv1.Role_ROLE_READ_ONLY && (c.GetAudit() != tilthv1.Audit_AUDIT_UNSPECIFIED || c.GetOwn() != tilthv1.Ownership_OWNERSHIP_UNSPECIFIED) {
				t.Errorf("%s changes something, and read-only callers may call it", method)
			}
			if role != tilthv1.Role_ROLE_AGENT && c.GetOwn() == tilthv1.Ownership_OWNERSHIP_SESSION {
				t.Errorf("%s needs a session, which %v does not have", method, role)
			}
		}
	}
}

func TestEveryMethodIsServed(t *testing.T) {
	served := requests(t)
	for _, method := range Methods() {
		if _, is := served[method]; !is {
			t.Errorf("%s is not a method", strings.TrimPrefix(method, "/"))
		}
	}
}

// TestBoundsAreThoseOfTheLimits compares the bounds of fields with the constants that clients and agents respect.
func TestBoundsAreThoseOfTheLimits(t *testing.T) {
	for field, want := range map[string]bound{
		"AgentSpec.toolchains":                    {items: MaxOffers, bytes: 256},
		"AgentSpec.device_classes":                {items: MaxOffers},
		"AgentSpec.tuners":                        {items: MaxOffers, bytes: 256},
		"Measurement.message":                     {bytes: FailureBytes},
		"BuildOutcome.message":                    {bytes: FailureBytes},
		"CancelJobRequest.reason":                 {bytes: TextBytes},
		"FinishJobRequest.reason":                 {bytes: TextBytes},
		"JobSpec.kernels":                         {MaxKernels, KernelBytes},
		"TaskSpec.seeds":                          {MaxSeeds, SeedBytes},
		"ListRecordKeysRequest.from":              {bytes: RecordKeyBytes},
		"FindLackingRecordsRequest.keys":          {bytes: MaxRecordKeys * RecordKeyBytes},
		"GetRecordsRequest.keys":                  {bytes: MaxRecordKeys * RecordKeyBytes},
		"ReportModelRequest.infra_message":        {bytes: TextBytes},
		"AgentSpec.LabelsEntry.value":             {bytes: TextBytes},
		"ReportRunRequest.failure":                {bytes: TextBytes},
		"ReportModelRequest.failure":              {bytes: TextBytes},
		"ReportBuildRequest.infra_message":        {bytes: TextBytes},
		"ReportRunRequest.infra_message":          {bytes: TextBytes},
		"PauseJobRequest.reason":                  {bytes: TextBytes},
		"ResumeJobRequest.reason":                 {bytes: TextBytes},
		"ReportMeasurementsRequest.infra_message": {bytes: TextBytes},
	} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("tilth.v1." + field))
		if err != nil {
			t.Fatal(err)
		}
		if got := boundOf(d.(protoreflect.FieldDescriptor)); got != want {
			t.Errorf("%s is bounded by %+v, want %+v", field, got, want)
		}
	}
}
