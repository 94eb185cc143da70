package onnx

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message: Number and either Value (varint and fixed types) or Bytes (length-delimited).
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64
	bytes  []byte
}

// eachField calls visit for the fields of a message in order. It rejects groups.
func eachField(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("cut short, or not an ONNX model: broken protobuf: %w", protowire.ParseError(n))
		}
		message = message[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			return fmt.Errorf("cut short, or not an ONNX model: broken protobuf: field %d has wire type %d", number, kind)
		}
		if n < 0 {
			return fmt.Errorf("cut short, or not an ONNX model: broken protobuf: field %d: %w", number, protowire.ParseError(n))
		}
		message = message[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// want rejects a field with a wire type other than the declared one.
func (f field) want(kind protowire.Type) error {
	if f.kind != kind {
		return fmt.Errorf("cut short, or not an ONNX model: broken protobuf: field %d has wire type %d, want %d", f.number, f.kind, kind)
	}
	return nil
}

// message returns the content of a length-delimited field.
func (f field) message() ([]byte, error) { return f.bytes, f.want(protowire.BytesType) }

func (f field) text(to *string) error {
	*to = string(f.bytes)
	return f.want(protowire.BytesType)
}

// texts adds a string to a list.
func (f field) texts(to *[]string) error {
	*to = append(*to, string(f.bytes))
	return f.want(protowire.BytesType)
}

// domain reads the name of an operator set, which is empty for ONNX's own.
func (f field) domain(to *string) error {
	err := f.text(to)
	if *to == "ai.onnx" {
		*to = ""
	}
	return err
}

func (f field) int(to *int64) error {
	*to = int64(f.value)
	return f.want(protowire.VarintType)
}

// numbers calls visit for each element of a repeated scalar field, which may be packed.
func (f field) numbers(kind protowire.Type, visit func(uint64)) error {
	if f.kind == kind {
		visit(f.value)
		return nil
	}
	if f.kind != protowire.BytesType {
		return f.want(kind)
	}
	for b := f.bytes; len(b) > 0; {
		var v uint64
		var n int
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(b)
			v = uint64(w)
		default:
			v, n = protowire.ConsumeFixed64(b)
		}
		if n < 0 {
			return fmt.Errorf("cut short, or not an ONNX model: broken protobuf: field %d: %w", f.number, protowire.ParseError(n))
		}
		visit(v)
		b = b[n:]
	}
	return nil
}
