package main

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// opaqueBytes is how long a message is of which only the first field is decoded.
const opaqueBytes = 1 << 10

// opaque is a codec that decodes only the first field of long messages, which is the lease. So it costs less than any
// denser form of what follows would.
type opaque struct{ encoding.CodecV2 }

func newOpaque() opaque { return opaque{encoding.GetCodecV2(grpcproto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c opaque) Unmarshal(data mem.BufferSlice, into any) error {
	if data.Len() < opaqueBytes {
		return c.CodecV2.Unmarshal(data, into)
	}
	text := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer text.Free()
	_, _, n := protowire.ConsumeField(text.ReadOnlyData())
	if n < 0 {
		return fmt.Errorf("first field of a message: %w", protowire.ParseError(n))
	}
	return proto.Unmarshal(text.ReadOnlyData()[:n], into.(proto.Message))
}
