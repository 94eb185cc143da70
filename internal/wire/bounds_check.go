package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Checker checks messages against the bounds of their fields. Its methods may be called concurrently.
type Checker struct {
	plans map[protoreflect.FullName]*plan
}

// NewChecker returns a Checker. It fails if the protocol defines a message that cannot be bounded.
func NewChecker() (*Checker, error) {
	p, err := plans()
	if err != nil {
		return nil, err
	}
	return &Checker{p}, nil
}

// Wire checks the encoding of a message of m's type. The error is a status INVALID_ARGUMENT that names the field, its
// size and its bound. Wire takes time linear in the encoding, which it does not decode, and does not allocate. It
// replaces control characters in strings by blanks, since strings may be printed to a terminal line by line.
func (c *Checker) Wire(m proto.Message, encoded []byte) error {
	name := m.ProtoReflect().Descriptor().FullName()
	p := c.plans[name]
	if p == nil {
		return status.Errorf(codes.Internal, "messages of type %s have no bounds: annotate the method and its fields, see proto/tilth/v1/options.proto", name)
	}
	if fault := p.check(encoded); fault != nil {
		return fault.status()
	}
	return nil
}

// Message is like Wire for a decoded message, such as a record from a file.
func (c *Checker) Message(m proto.Message) error {
	encoded, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return c.Wire(m, encoded)
}

// fault is a broken bound; field is the path from the message.
type fault struct{ field, text string }

func (f *fault) status() error {
	text := f.text
	if f.field != "" {
		text = f.field + ": " + text
	}
	s := status.New(codes.InvalidArgument, text)
	detailed, err := s.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: f.field, Description: f.text}},
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
