package bounds

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// mostCounted is how many lists, maps and messages a message can have as fields.
const mostCounted = 16

// plan is how a message is checked.
type plan struct {
	fields []*field // by number; nil where there is none
}

// field is how one field of a message is checked.
type field struct {
	name string
	kind protoreflect.Kind
	bound
	// counted is the place of its count among those of its message; -1 for one that cannot come more than once. A
	// message that is no list may come once: what comes again would be merged with what came first, past all bounds.
	counted int
	list    bool
	message *plan // of messages and maps
}

// plans makes the plans of all messages that the methods' requests can hold.
func plans() (map[protoreflect.FullName]*plan, error) {
	made := map[protoreflect.FullName]*plan{}
	for method := range requestBytes {
		name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("bounds of %s: %w", method, err)
		}
		if _, err := planOf(d.(protoreflect.MethodDescriptor).Input(), made); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// planOf makes the plan of a message and of those that it holds. None holds itself, so checks go no deeper than the
// plans.
func planOf(m protoreflect.MessageDescriptor, made map[protoreflect.FullName]*plan) (*plan, error) {
	if p, is := made[m.FullName()]; is {
		if p == nil {
			return nil, fmt.Errorf("bounds: %s holds itself", m.FullName())
		}
		return p, nil
	}
	made[m.FullName()] = nil
	p := &plan{}
	counted := 0
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		f := &field{name: string(d.Name()), kind: d.Kind(), list: d.IsList() || d.IsMap(), bound: fields[d.FullName()], counted: -1}
		if d.Message() != nil {
			var err error
			if f.message, err = planOf(d.Message(), made); err != nil {
				return nil, err
			}
			if !f.list {
				f.items = 1
			}
		}
		if f.list || f.message != nil {
			if f.counted = counted; counted == mostCounted {
				return nil, fmt.Errorf("bounds: %s has more than %d lists, maps and messages", m.FullName(), mostCounted)
			}
			counted++
		}
		p.put(d.Number(), f)
	}
	made[m.FullName()] = p
	return p, nil
}

func (p *plan) put(number protoreflect.FieldNumber, f *field) {
	for len(p.fields) <= int(number) {
		p.fields = append(p.fields, nil)
	}
	p.fields[number] = f
}

// field is that of a number; nil for one that is not known.
func (p *plan) field(number protoreflect.FieldNumber) *field {
	if int(number) < len(p.fields) {
		return p.fields[number]
	}
	return nil
}
