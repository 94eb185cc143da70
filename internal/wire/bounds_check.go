package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// CheckEncoded checks the encoding of a message of m's type against the bounds of its fields. The error is a status
// INVALID_ARGUMENT that names the field, its size and its bound. It takes time linear in the encoding, which it does
// not decode, and does not allocate. It replaces control characters in strings by blanks, since strings may be printed
// to a terminal line by line.
func CheckEncoded(m proto.Message, encoded []byte) error {
	name := m.ProtoReflect().Descriptor().FullName()
	p := plans()[name]
	if p == nil {
		return status.Errorf(codes.Internal, "messages of type %s have no bounds: annotate the method and its fields, see proto/tilth/v1/options.proto", name)
	}
	if fault := p.check(encoded); fault != nil {
		return Invalid(fault.field, fault.text)
	}
	return nil
}

// Check is like CheckEncoded for a decoded message, such as a record from a file.
func Check(m proto.Message) error {
	encoded, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return CheckEncoded(m, encoded)
}

// fault is a broken bound; field is the path from the message.
type fault struct{ field, text string }

// Invalid returns a status INVALID_ARGUMENT for a field of a request, or for all of it if field is empty.
func Invalid(field, text string) error {
	message := text
	if field != "" {
		message = field + ": " + text
	}
	s := status.New(codes.InvalidArgument, message)
	detailed, err := s.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: text}},
	})
	if err == nil {
		s = detailed
	}
	return s.Err()
}

var errEncoding = &fault{text: "the message is not encoded as protocol buffers are"}

// check walks the encoding of a message field by field. Unknown fields are skipped: decoding drops them.
func (p *plan) check(b []byte) *fault {
	var counts [maxCounted]int
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return errEncoding
		}
		b = b[n:]
		f := p.field(number)
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return errEncoding
			}
			if f != nil && f.list {
				if fault := f.count(&counts, 1); fault != nil {
					return fault
				}
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errEncoding
		}
		b = b[n:]
		if f != nil {
			if fault := f.check(&counts, value); fault != nil {
				return fault
			}
		}
	}
	return nil
}

// check checks a length-delimited value against the field's bounds.
func (f *field) check(counts *[maxCounted]int, value []byte) *fault {
	switch {
	case f.message != nil:
		if fault := f.count(counts, 1); fault != nil {
			return fault
		}
		return f.within(f.message.check(value), counts)
	case f.kind == protoreflect.StringKind || f.kind == protoreflect.BytesKind:
		if f.list {
			if fault := f.count(counts, 1); fault != nil {
				return fault
			}
		}
		if len(value) > f.bytes {
			return f.within(&fault{text: fmt.Sprintf("has %d bytes, more than the limit of %d", len(value), f.bytes)}, counts)
		}
		if f.kind == protoreflect.StringKind {
			blank(value)
		}
	case f.list:
		return f.count(counts, packed(f.kind, value))
	}
	return nil
}

// blank replaces the control characters of a UTF-8 string by blanks: bytes below 0x20, DEL, and two-byte sequences
// that begin with c2. NUL stays: terminals ignore it, and keys that contain it are refused.
func blank(text []byte) {
	for i, b := range text {
		switch {
		case b != 0 && b < ' ' || b == 0x7f:
			text[i] = ' '
		case b == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0:
			text[i], text[i+1] = ' ', ' '
		}
	}
}

func (f *field) count(counts *[maxCounted]int, more int) *fault {
	if counts[f.counted] += more; counts[f.counted] <= f.items {
		return nil
	}
	if !f.list {
		return &fault{f.name, "is a duplicate"}
	}
	return &fault{f.name, fmt.Sprintf("has more than %d items", f.items)}
}

// within prepends the field to the path of a fault.
func (f *field) within(inner *fault, counts *[maxCounted]int) *fault {
	if inner == nil {
		return nil
	}
	name := f.name
	if f.list {
		name = fmt.Sprintf("%s[%d]", name, counts[f.counted]-1)
	}
	if inner.field != "" {
		name += "." + inner.field
	}
	return &fault{name, inner.text}
}

// packed counts the numbers of a packed list.
func packed(kind protoreflect.Kind, value []byte) int {
	switch kind {
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return len(value) / 8
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return len(value) / 4
	}
	n := 0
	for _, b := range value {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// maxJSONDepth exceeds the depth of every request.
const maxJSONDepth = 32

// CheckJSON checks the JSON form of a message of m's type like CheckEncoded: two bytes of text may decode to a
// hundred. It leaves faults of syntax and unknown names to the decoder.
func CheckJSON(m proto.Message, text []byte) error {
	d := m.ProtoReflect().Descriptor()
	if fault := checkJSON(json.NewDecoder(bytes.NewReader(text)), &field{message: plans()[d.FullName()]}, d, 0); fault != nil {
		return Invalid(fault.field, fault.text)
	}
	return nil
}

// checkJSON checks the next value against a field, which is nil if unknown. d is its type if it holds messages.
func checkJSON(in *json.Decoder, f *field, d protoreflect.MessageDescriptor, depth int) *fault {
	token, _ := in.Token() // after an error there is no token, and no more
	open, holds := token.(json.Delim)
	text, _ := token.(string)
	switch {
	case depth > maxJSONDepth:
		return &fault{text: fmt.Sprintf("has values nested deeper than %d", maxJSONDepth)}
	case !holds && f != nil && f.kind == protoreflect.StringKind && len(text) > f.bytes,
		!holds && f != nil && f.kind == protoreflect.BytesKind && len(text)/4*3 > f.bytes+2:
		return &fault{f.name, fmt.Sprintf("has %d characters, more than the limit of %d bytes", len(text), f.bytes)}
	}
	for n := 0; holds && in.More(); n++ {
		if f != nil && n >= f.items && (open == '[' || d != nil && d.IsMapEntry()) {
			return &fault{f.name, fmt.Sprintf("has more than %d items", f.items)}
		}
		of, at := f, d
		if open == '{' {
			key, _ := in.Token()
			of, at = member(f, d, key)
		}
		if fault := checkJSON(in, of, at, depth+1); fault != nil {
			return fault
		}
	}
	if holds {
		_, _ = in.Token()
	}
	return nil
}

// member returns the field of a message, or the value's of a map, at a key.
func member(f *field, d protoreflect.MessageDescriptor, key json.Token) (*field, protoreflect.MessageDescriptor) {
	name, _ := key.(string)
	if f == nil || f.message == nil || d == nil {
		return nil, nil
	}
	found := d.Fields().ByJSONName(name)
	if d.IsMapEntry() {
		found = d.Fields().ByNumber(2)
	} else if found == nil {
		found = d.Fields().ByTextName(name)
	}
	if found == nil {
		return nil, nil
	}
	return f.message.field(found.Number()), found.Message()
}

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

// plans returns the plans of all messages that requests may contain. It panics if the protocol defines a message that
// cannot be bounded.
var plans = sync.OnceValue(func() map[protoreflect.FullName]*plan {
	made := map[protoreflect.FullName]*plan{}
	for _, method := range Methods() {
		name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			panic(fmt.Sprintf("bounds of %s: %v", method, err))
		}
		planOf(d.(protoreflect.MethodDescriptor).Input(), made)
	}
	return made
})

// planOf returns the plan of a message, and adds those of the messages that it contains. No message contains itself,
// so the recursion of a check is bounded by the plans.
func planOf(m protoreflect.MessageDescriptor, made map[protoreflect.FullName]*plan) *plan {
	if p, is := made[m.FullName()]; is {
		if p == nil {
			panic(fmt.Sprintf("bounds: %s holds itself", m.FullName()))
		}
		return p
	}
	made[m.FullName()] = nil
	p := &plan{}
	counted := 0
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		f := &field{name: string(d.Name()), kind: d.Kind(), list: d.IsList() || d.IsMap(), bound: boundOf(d), counted: -1}
		if d.Message() != nil {
			if f.message = planOf(d.Message(), made); !f.list {
				f.items = 1
			}
		}
		if f.list || f.message != nil {
			if f.counted = counted; counted == maxCounted {
				panic(fmt.Sprintf("bounds: %s has more than %d lists, maps and messages", m.FullName(), maxCounted))
			}
			counted++
		}
		p.put(d.Number(), f)
	}
	made[m.FullName()] = p
	return p
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
