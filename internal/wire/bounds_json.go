package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxJSONDepth exceeds the depth of every request.
const maxJSONDepth = 32

// JSON checks the JSON form of a message of m's type like Wire: two bytes of text may decode to a hundred. It leaves
// faults of syntax and unknown names to the decoder.
func (c *Checker) JSON(m proto.Message, text []byte) error {
	d := m.ProtoReflect().Descriptor()
	if fault := checkJSON(json.NewDecoder(bytes.NewReader(text)), &field{message: c.plans[d.FullName()]}, d, 0); fault != nil {
		return fault.status()
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
