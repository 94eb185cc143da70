package wire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// bound limits a field: the number of items of a list or map, and the bytes of each string or byte string.
type bound struct{ items, bytes int }

// standardBytes bounds the strings of standard services, whose fields have no options.
const standardBytes = 256

// boundOf returns the bound of a field, which its options contain; those of a map's keys and values belong to the map.
func boundOf(d protoreflect.FieldDescriptor) bound {
	isText := d.Kind() == protoreflect.StringKind || d.Kind() == protoreflect.BytesKind
	if d.ParentFile().Package() != "tilth.v1" {
		if isText {
			return bound{bytes: standardBytes}
		}
		return bound{}
	}
	option := func(d protoreflect.FieldDescriptor, e protoreflect.ExtensionType) int {
		return int(proto.GetExtension(d.Options(), e).(uint32))
	}
	entry := d.ContainingMessage()
	switch {
	case d.IsMap():
		return bound{items: option(d, tilthv1.E_MaxItems)}
	case !entry.IsMapEntry():
		return bound{option(d, tilthv1.E_MaxItems), option(d, tilthv1.E_MaxBytes)}
	case !isText:
		return bound{}
	}
	siblings := entry.Parent().(protoreflect.MessageDescriptor).Fields()
	for i := range siblings.Len() {
		switch of := siblings.Get(i); {
		case of.Message() != entry:
		case d.Number() == 1:
			return bound{bytes: option(of, tilthv1.E_MaxKeyBytes)}
		default:
			return bound{bytes: option(of, tilthv1.E_MaxBytes)}
		}
	}
	return bound{}
}

// maxCounted bounds the number of lists, maps and messages among a message's fields.
const maxCounted = 16

// plan describes how to check a message.
type plan struct {
	fields []*field // by number; nil = unknown
}

// field describes how to check one field of a message.
type field struct {
	name string
	kind protoreflect.Kind
	bound
	// counted is the index of the field's counter; -1 if it cannot occur repeatedly. A singular message may occur once
	// only: decoding would merge further occurrences into the first, past all bounds.
	counted int
	list    bool
	message *plan // of messages and maps
}

// plans returns the plans of all messages that requests may contain.
func plans() (map[protoreflect.FullName]*plan, error) {
	made := map[protoreflect.FullName]*plan{}
	for _, method := range Methods() {
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

// planOf returns the plan of a message, and adds those of the messages that it contains. No message contains itself,
// so the recursion of a check is bounded by the plans.
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
		f := &field{name: string(d.Name()), kind: d.Kind(), list: d.IsList() || d.IsMap(), bound: boundOf(d), counted: -1}
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
			if f.counted = counted; counted == maxCounted {
				return nil, fmt.Errorf("bounds: %s has more than %d lists, maps and messages", m.FullName(), maxCounted)
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

// field returns the field with a number; nil if unknown.
func (p *plan) field(number protoreflect.FieldNumber) *field {
	if int(number) < len(p.fields) {
		return p.fields[number]
	}
	return nil
}
