package wire

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// requests returns the types of all requests to a tracker's services. It finds them by reflection, independently of
// the table.
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

// TestEveryFieldOfEveryRequestHasABound catches new fields and methods without a bound.
func TestEveryFieldOfEveryRequestHasABound(t *testing.T) {
	lines, seen := maps.Clone(fields), map[protoreflect.FullName]bool{}
	for method, request := range requests(t) {
		if RequestBytes(method) == 0 {
			t.Errorf("requests of %s have no bound", method)
		}
		if _, is := answerBytes[method]; !is {
			t.Errorf("answers of %s have no line", method)
		}
		long(request, seen, func(d protoreflect.FieldDescriptor) {
			b := fields[d.FullName()]
			if (d.IsList() || d.IsMap()) != (b.items > 0) {
				t.Errorf("%s is bounded by %d items", d.FullName(), b.items)
			}
			if text := !d.IsMap() && (d.Kind() == protoreflect.StringKind || d.Kind() == protoreflect.BytesKind); text != (b.bytes > 0) {
				t.Errorf("%s is bounded by %d bytes", d.FullName(), b.bytes)
			}
			delete(lines, d.FullName())
		})
	}
	if left := slices.Collect(maps.Keys(lines)); len(left) > 0 {
		t.Errorf("lines of fields that there are not: %v", left)
	}
}

func TestEveryMethodOfTheTableIsServed(t *testing.T) {
	served := requests(t)
	for _, method := range append(slices.Collect(maps.Keys(requestBytes)), slices.Collect(maps.Keys(answerBytes))...) {
		if _, is := served[method]; !is {
			t.Errorf("%s is not a method", strings.TrimPrefix(method, "/"))
		}
	}
}
