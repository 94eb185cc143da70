package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fill sets a field to its maximum size plus more.
func fill(m protoreflect.Message, d protoreflect.FieldDescriptor, more int) {
	b := boundOf(d)
	size := b.bytes
	if !d.IsList() {
		size += more
	}
	one := func() protoreflect.Value {
		switch d.Kind() {
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(strings.Repeat("x", size))
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes(make([]byte, size))
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(1)
		case protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(1)
		case protoreflect.FloatKind:
			return protoreflect.ValueOfFloat32(1)
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(1)
		}
		return protoreflect.Value{}
	}
	switch {
	case d.IsMap():
		for i := range b.items + more {
			value := protoreflect.ValueOfString("x")
			if d.MapValue().Kind() != protoreflect.StringKind {
				value = m.Mutable(d).Map().NewValue()
			}
			key := protoreflect.ValueOfString(fmt.Sprint(i))
			if d.MapKey().Kind() == protoreflect.Int64Kind {
				key = protoreflect.ValueOfInt64(int64(i))
			}
			m.Mutable(d).Map().Set(key.MapKey(), value)
		}
	case d.IsList():
		for range b.items + more {
			if d.Message() != nil {
				m.Mutable(d).List().AppendMutable()
			} else {
				m.Mutable(d).List().Append(one())
			}
		}
	default:
		m.Set(d, one())
	}
}

// TestEveryBoundIsKept fills each field to its bound and beyond, in a separate message.
func TestEveryBoundIsKept(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	for _, request := range requests(t) {
		long(request, seen, func(d protoreflect.FieldDescriptor) {
			if d.ContainingMessage().IsMapEntry() {
				return // tested separately
			}
			full, beyond := dynamicpb.NewMessage(d.ContainingMessage()), dynamicpb.NewMessage(d.ContainingMessage())
			fill(full, d, 0)
			fill(beyond, d, 1)
			if err := Check(full); err != nil {
				t.Errorf("%s at its bound: %v", d.FullName(), err)
			}
			err := Check(beyond)
			if status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), string(d.Name())) {
				t.Errorf("%s beyond its bound: %v", d.FullName(), err)
			}
		})
	}
}

func TestFaultNamesItsFieldItsSizeAndItsBound(t *testing.T) {
	task := &tilthv1.TaskSpec{}
	for name, test := range map[string]struct {
		message proto.Message
		want    string
	}{
		"within lists": {
			&tilthv1.SubmitJobRequest{Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{task, {Name: strings.Repeat("x", 4097)}}}},
			"spec.tasks[1].name: has 4097 bytes, more than the limit of 4096",
		},
		"of a list": {
			&tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{Toolchains: make([]string, 120_000)}},
			"spec.toolchains: has more than 256 items",
		},
		"of a list's item": {
			&tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{Toolchains: []string{"gcc", strings.Repeat("x", 257)}}},
			"spec.toolchains[1]: has 257 bytes, more than the limit of 256",
		},
		"of a map": {
			&tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{Labels: map[string]string{"k": strings.Repeat("x", 4097)}}},
			"spec.labels[0].value: has 4097 bytes, more than the limit of 4096",
		},
		"of itself": {
			&tilthv1.CancelJobRequest{Reason: strings.Repeat("x", 40<<20)},
			"reason: has 41943040 bytes, more than the limit of 4096",
		},
	} {
		err := Check(test.message)
		s := status.Convert(err)
		if s.Code() != codes.InvalidArgument || s.Message() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
			continue
		}
		field := s.Details()[0].(*errdetails.BadRequest).GetFieldViolations()[0].GetField()
		if !strings.HasPrefix(test.want, field+": ") {
			t.Errorf("%s: the field is %q", name, field)
		}
	}
}

// TestMessageThatComesInPartsIsRefused because a decoder merges repeated parts, so lists could exceed their bounds.
func TestMessageThatComesInPartsIsRefused(t *testing.T) {
	part := encode(t, &tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{Toolchains: make([]string, 200)}})
	err := CheckEncoded(&tilthv1.JoinRequest{}, append(part, part...))
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "spec: is a duplicate" {
		t.Errorf("got %v", err)
	}
}

// TestTextsHaveNoControlCharacters covers reasons that could move a terminal's cursor, or end the line and forge
// another job's in a list.
func TestTextsHaveNoControlCharacters(t *testing.T) {
	ask := &tilthv1.CancelJobRequest{JobId: "job-1", Reason: "a\x1b[31m\r\nb\tc\x7f\u009bd é日\u00a0"}
	encoded, got := encode(t, ask), &tilthv1.CancelJobRequest{}
	if err := CheckEncoded(ask, encoded); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(encoded, got); err != nil {
		t.Fatal(err)
	}
	if want := "a [31m  b c   d é日\u00a0"; got.GetReason() != want {
		t.Errorf("got %q, want %q", got.GetReason(), want)
	}
	task := &tilthv1.TaskSpec{Workload: []byte("tilth-workload 1\n")}
	submit := &tilthv1.SubmitJobRequest{Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{task}}}
	encoded = encode(t, submit)
	if err := errors.Join(CheckEncoded(submit, encoded), proto.Unmarshal(encoded, submit)); err != nil {
		t.Fatal(err)
	}
	if got := string(submit.GetSpec().GetTasks()[0].GetWorkload()); got != "tilth-workload 1\n" {
		t.Errorf("bytes came as %q", got)
	}
}

// TestNumbersOfAListAreCountedHoweverTheyCome mixes packed and unpacked encodings.
func TestNumbersOfAListAreCountedHoweverTheyCome(t *testing.T) {
	const limit = 1000
	var single, mixed []byte
	for range limit + 1 {
		single = protowire.AppendFixed64(protowire.AppendTag(single, 2, protowire.Fixed64Type), 1)
	}
	for range 2 {
		mixed = protowire.AppendBytes(protowire.AppendTag(mixed, 2, protowire.BytesType), make([]byte, 8*(limit/2+1)))
	}
	for name, encoded := range map[string][]byte{"one by one": single, "in parts": mixed} {
		if err := CheckEncoded(&tilthv1.CalibrationReport{}, encoded); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzWire checks that every message that decodes within its bounds passes the check, and that no other encoding
// circumvents it.
func FuzzWire(f *testing.F) {
	f.Add(encode(f, &tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{Name: "a", Toolchains: []string{"x"}, Labels: map[string]string{"k": "v"}}}))
	f.Add(bytes.Repeat([]byte{0x0a, 0}, 3))
	f.Add([]byte{0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		// Many repetitions exceed small bounds quickly.
		encoded = bytes.Repeat(encoded, 1+len(encoded)%70)
		m := &tilthv1.JoinRequest{}
		if CheckEncoded(m, encoded) != nil || (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, m) != nil {
			return
		}
		if err := Check(m); err != nil {
			t.Errorf("%x: passes as it came, and then %v", encoded, err)
		}
	})
}

// BenchmarkWire measures the check of a batch report.
func BenchmarkWire(b *testing.B) {
	r := &tilthv1.ReportMeasurementsRequest{Lease: &tilthv1.LeaseToken{Session: "s", Subject: "job-1/2"}}
	for i := range 32 {
		r.Measurements = append(r.Measurements, &tilthv1.Measurement{
			Candidate:      &tilthv1.Candidate{Digest: strings.Repeat("d", 64), Trial: uint32(i)},
			SamplesSeconds: make([]float64, 10), LatencySeconds: 1e-3, Interval: &tilthv1.Interval{LowSeconds: 1, HighSeconds: 2},
		})
	}
	encoded := encode(b, r)
	b.SetBytes(int64(len(encoded)))
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckEncoded(r, encoded); err != nil {
			b.Fatal(err)
		}
	}
}

// TestJSONIsCheckedByTheSameBounds covers each kind of bound before the text is decoded.
func TestJSONIsCheckedByTheSameBounds(t *testing.T) {
	items := func(n int, item string) string { return strings.Repeat(item+",", n-1) + item }
	for text, want := range map[string]string{
		`{"spec":{"tasks":[` + items(4096, `{}`) + `]}}`:                                "",
		`{"spec":{"tasks":[` + items(4097, `{}`) + `]}}`:                                "tasks: has more than 4096 items",
		`{"spec":{"name":"` + strings.Repeat("x", 256) + `"}}`:                          "",
		`{"spec":{"name":"` + strings.Repeat("x", 257) + `"}}`:                          "name: has 257 characters, more than the limit of 256 bytes",
		`{"spec":{"target":{"descriptor":"` + strings.Repeat("A", 65536/3*4) + `"}}}`:   "",
		`{"spec":{"target":{"descriptor":"` + strings.Repeat("A", 65536/3*4+9) + `"}}}`: "descriptor: has ",
		`{"x":` + strings.Repeat("[", 1<<20):                                            "has values nested deeper than 32",
		`{"spec":{"unknown":[[1,{"x":[2]}],3]}}`:                                        "",
		`{"spec":{"budget":{"time":"3s"}}}`:                                             "",
		`{"spec":{`:                                                                     "",
		`nonsense`:                                                                      "",
	} {
		if err := CheckJSON(&tilthv1.SubmitJobRequest{}, []byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}
