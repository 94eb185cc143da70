package chaos

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"
)

// learn remembers the strings of a message by field.
func (w *wild) learn(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		keep := func(v protoreflect.Value) {
			switch f.Kind() {
			case protoreflect.StringKind:
				w.keepWord(string(f.Name()), v.String())
			case protoreflect.MessageKind:
				w.learn(v.Message())
			}
		}
		switch {
		case f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				keep(v.List().Get(i))
			}
		default:
			keep(v)
		}
		return true
	})
}

// maxWords bounds the strings per field.
const maxWords = 12

func (w *wild) keepWord(field, word string) {
	if len(w.words[field]) < maxWords && len(word) < 200 && !slices.Contains(w.words[field], word) {
		w.words[field] = append(w.words[field], word)
	}
}

// word draws a known string of a field.
func (w *wild) word(field string) string {
	if known := w.words[field]; len(known) > 0 {
		return rapid.SampledFrom(known).Draw(w.T, field)
	}
	return rapid.String().Draw(w.T, field)
}

// anyWord draws a string of the field, of another field, or an unknown one.
func (w *wild) anyWord(field string) string {
	switch rapid.IntRange(0, 9).Draw(w.T, "word") {
	case 0:
		return rapid.String().Draw(w.T, field)
	case 1:
		return strings.Repeat("\x00long", rapid.SampledFrom([]int{1, 1, 1, 1000, 20_000, 200_000}).Draw(w.T, "times"))
	case 2, 3:
		return w.word(rapid.SampledFrom(slices.Sorted(maps.Keys(w.words))).Draw(w.T, "other"))
	case 4:
		return ""
	}
	return w.word(field)
}

// mutate changes some fields of a message.
func (w *wild) mutate(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch what := rapid.IntRange(0, 11).Draw(w.T, "change"); {
		case what == 0:
			m.Clear(f)
		case what == 1:
			w.set(m, f, 0)
		case f.IsList() && f.Message() != nil:
			list := m.Mutable(f).List()
			for k := range list.Len() {
				w.mutate(list.Get(k).Message())
			}
			if what == 2 && list.Len() > 0 {
				list.Append(list.Get(0)) // a duplicate
			}
		case f.Message() != nil && !f.IsMap() && m.Has(f):
			w.mutate(m.Mutable(f).Message())
		}
	}
}

// madeUp returns a message with random fields of the right types.
func (w *wild) madeUp(d protoreflect.MessageDescriptor, depth int) proto.Message {
	if d.FullName() == (&durationpb.Duration{}).ProtoReflect().Descriptor().FullName() && rapid.Bool().Draw(w.T, "short") {
		return durationpb.New(time.Millisecond)
	}
	m := newMessage(d)
	for i := range d.Fields().Len() {
		if rapid.IntRange(0, 2).Draw(w.T, "set") > 0 {
			w.set(m.ProtoReflect(), d.Fields().Get(i), depth)
		}
	}
	return m
}

// maxItems is the length of an oversized list.
const maxItems = 5000

// maxDepth limits the nesting of made-up messages.
const maxDepth = 4

func (w *wild) set(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	switch {
	case depth == maxDepth && f.Message() != nil:
	case f.IsMap():
		value := f.MapValue()
		key := w.scalar(f.MapKey()).MapKey()
		if value.Message() != nil {
			m.Mutable(f).Map().Set(key, protoreflect.ValueOfMessage(w.madeUp(value.Message(), depth+1).ProtoReflect()))
		} else {
			m.Mutable(f).Map().Set(key, w.scalar(value))
		}
	case f.IsList():
		list := m.Mutable(f).List()
		for range rapid.IntRange(0, 3).Draw(w.T, "length") {
			if f.Message() != nil {
				list.Append(protoreflect.ValueOfMessage(w.madeUp(f.Message(), depth+1).ProtoReflect()))
			} else {
				list.Append(w.scalar(f))
			}
		}
		if rapid.IntRange(0, 15).Draw(w.T, "many") == 0 {
			for range maxItems {
				list.Append(list.NewElement()) // empty, because there are many
			}
		}
	case f.Message() != nil:
		m.Set(f, protoreflect.ValueOfMessage(w.madeUp(f.Message(), depth+1).ProtoReflect()))
	default:
		m.Set(f, w.scalar(f))
	}
}

// scalar draws a value of a field.
func (w *wild) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(w.T, "bool"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 20).Draw(w.T, "enum")))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(w.T, "int32"))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(w.T, "int64"))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(w.T, "uint32"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(w.T, "uint64"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(w.T, "float"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64().Draw(w.T, "double"))
	case protoreflect.BytesKind:
		some := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(w.T, "bytes")
		return protoreflect.ValueOfBytes(bytes.Repeat(some, rapid.SampledFrom([]int{1, 1, 1, 1, 5000, 100_000}).Draw(w.T, "times")))
	}
	return protoreflect.ValueOfString(w.anyWord(string(f.Name())))
}

// raw is an encoded message.
type raw []byte

// rawCodec passes bytes through.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.(raw), nil }

func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*raw) = slices.Clone(b)
	return nil
}

func (rawCodec) Name() string { return "proto" }
