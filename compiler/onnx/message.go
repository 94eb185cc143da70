package onnx

import (
	"bytes"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message builds a protobuf message from pieces, so that tensor elements need not be copied into it, nor be in
// memory before they are written.
type message struct {
	pieces []piece
	size   int64
}

// piece is a run of bytes: text, or size bytes that content writes.
type piece struct {
	text    []byte
	content func(io.Writer) error
	size    int64
}

// append appends to the text at the end.
func (m *message) append(extend func(b []byte) []byte) {
	if n := len(m.pieces); n == 0 || m.pieces[n-1].content != nil {
		m.pieces = append(m.pieces, piece{})
	}
	last := &m.pieces[len(m.pieces)-1]
	before := len(last.text)
	last.text = extend(last.text)
	m.size += int64(len(last.text) - before)
}

func (m *message) int(number protowire.Number, v int64) {
	m.append(func(b []byte) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
	})
}

func (m *message) bytes(number protowire.Number, v []byte) {
	m.append(func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
	})
}

// text omits an empty string.
func (m *message) text(number protowire.Number, v string) {
	if v != "" {
		m.bytes(number, []byte(v))
	}
}

// texts is a repeated string; empty ones are kept.
func (m *message) texts(number protowire.Number, list []string) {
	for _, s := range list {
		m.bytes(number, []byte(s))
	}
}

func (m *message) float(number protowire.Number, v float32) {
	m.append(func(b []byte) []byte {
		return protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), math.Float32bits(v))
	})
}

// content is a field of size bytes that write produces when the message is written.
func (m *message) content(number protowire.Number, size int64, write func(io.Writer) error) {
	m.length(number, size)
	m.pieces = append(m.pieces, piece{content: write, size: size})
	m.size += size
}

// message is a nested message field.
func (m *message) message(number protowire.Number, sub *message) {
	m.length(number, sub.size)
	for _, p := range sub.pieces {
		if p.content == nil {
			m.append(func(b []byte) []byte { return append(b, p.text...) })
			continue
		}
		m.pieces = append(m.pieces, p)
		m.size += p.size
	}
}

func (m *message) length(number protowire.Number, size int64) {
	m.append(func(b []byte) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
	})
}

func (m *message) write(w io.Writer) error {
	for _, p := range m.pieces {
		if p.content != nil {
			if err := p.content(w); err != nil {
				return err
			}
			continue
		}
		if _, err := w.Write(p.text); err != nil {
			return err
		}
	}
	return nil
}

// encoded returns the message in memory. Contents that fail to write are missing.
func (m *message) encoded() []byte {
	var b bytes.Buffer
	b.Grow(int(m.size))
	_ = m.write(&b) // a buffer accepts everything
	return b.Bytes()
}
